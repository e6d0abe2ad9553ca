// tandem devices: lists the CPU and the CUDA devices of this machine.
#include <fmt/format.h>

#include <memory>

#include "apps/tandem/command.h"
#include "apps/tandem/terminal.h"
#include "tandem/study/machine_report.h"

namespace tandem {

void add_devices_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("devices", "List the CPU and every CUDA device");
  command->footer("Example: tandem devices --json");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print JSON");
  command->callback([json, &action] {
    action = [json] {
      const MachineFacts machine = machine_facts();
      fmt::print("{}", *json ? devices_json(machine) : devices_text(machine, terminal_style(stdout)));
      return 0;
    };
  });
}

}  // namespace tandem
