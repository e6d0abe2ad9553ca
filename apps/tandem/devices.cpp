// tandem devices: lists the CPU and the CUDA devices of this machine.
#include <fmt/format.h>

#include <memory>
#include <string>

#include "apps/tandem/command.h"
#include "apps/tandem/output.h"
#include "apps/tandem/terminal.h"
#include "tandem/study/machine_report.h"

namespace tandem {

void add_devices_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("devices", "List the CPU and every CUDA device");
  command->footer("Example: tandem devices --json");
  auto json = std::make_shared<std::string>();
  add_json_flag(*command, *json, "JSON to a file, or instead of the list");
  command->callback([json, &action] {
    action = [json] {
      check_output(*json, "devices");
      const MachineFacts machine = machine_facts();
      if (!is_stdout(*json)) print_output("{}", devices_text(machine, terminal_style(stdout)));
      if (!json->empty()) write_output(*json, devices_json(machine), "devices");
      return 0;
    };
  });
}

}  // namespace tandem
