#include "host/cli/share_files.hpp"

#include <array>
#include <filesystem>
#include <fstream>

#include "host/cli/completion.hpp"
#include "host/cli/manual.hpp"

namespace sluice::cli {

namespace {

/// Where a shell looks for the completion of PROGRAM, below share/. bash and fish go by the file's name.
struct CompletionPlace {
  std::string_view shell;
  std::string_view before;
  std::string_view behind;
};
constexpr std::array<CompletionPlace, 3> kPlaces{{{"bash", "bash-completion/completions/", ""},
                                                  {"zsh", "zsh/site-functions/_", ""},
                                                  {"fish", "fish/vendor_completions.d/", ".fish"}}};

bool write(const std::filesystem::path& file, const std::string& text) {
  std::error_code failed;
  std::filesystem::create_directories(file.parent_path(), failed);
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << text;
  return static_cast<bool>(out.flush());
}

}  // namespace

Exit write_share_files(const std::string& folder) {
  const std::filesystem::path root = folder;
  for (const ManualPage& page : manual()) {
    if (!write(root / "man/man1" / page.file, page.text)) {
      return Exit::failure("cannot write " + page.file + " below " + folder);
    }
  }
  for (const CompletionPlace& place : kPlaces) {
    for (const std::string_view program : {"sluice", "dynamomq"}) {
      const std::string file = std::string(place.before) + std::string(program) + std::string(place.behind);
      if (!write(root / file, completion_for(place.shell, program).value_or(""))) {
        return Exit::failure("cannot write " + file + " below " + folder);
      }
    }
  }
  return Exit::ok();
}

}  // namespace sluice::cli
