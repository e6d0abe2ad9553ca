#include "tandem/dist/connect_group.h"

#include "tandem/dist/mpi_plugin.h"

namespace tandem {

std::unique_ptr<Group> connect_group(const LaunchedRank& launched, const GroupOptions& options) {
  switch (launched.launcher) {
    case Launcher::none:
      break;
    case Launcher::local:
      return local_group(launched.place, std::make_shared<LocalSegment>(Descriptor(launched.segment_fd)),
                         options);
    case Launcher::slurm:
    case Launcher::open_mpi:
    case Launcher::mpich: {
      if (launched.place.size == 1) break;  // nobody to connect to
      const MpiPlugin plugin(mpi_plugin_files(process_environment()), launched);
      return transport_group(
          launched.place, [plugin] { return plugin.open(); }, options);
    }
  }
  return solo_group();
}

}  // namespace tandem
