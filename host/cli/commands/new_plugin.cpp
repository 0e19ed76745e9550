#include <algorithm>
#include <array>
#include <boost/algorithm/string/replace.hpp>
#include <filesystem>

#include "base/ranges.hpp"
#include "base/shell_word.hpp"
#include "base/text/lower_case.hpp"
#include "base/text/utf8.hpp"
#include "base/text/visible.hpp"
#include "config/syntax.hpp"
#include "host/cli/command.hpp"
#include "host/cli/options.hpp"
#include "host/cli/plugin_template.hpp"
#include "host/cli/views/output.hpp"

namespace sluice::cli {

namespace {

/// The kind of project that an option asks for, and the parts of the template that it is made of.
struct Kind {
  std::string_view flag;  ///< empty: without an option
  std::array<std::string_view, 4> parts;
};
constexpr std::array<Kind, 4> kKinds{{{"", {"cpp", "single", "sync", "plain"}},
                                      {"batch", {"cpp", "batch"}},
                                      {"async", {"cpp", "single", "async"}},
                                      {"c", {"single", "sync", "c"}}}};

constexpr std::size_t kMaxName = 64;  // what the ABI allows a handler's name

// C++20's keywords with those of C11 that can be written in lower case, and the targets that CMake keeps for itself.
constexpr std::string_view kTaken =
    " alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class "
    "compl "
    "concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default "
    "delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long "
    "mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register "
    "reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast struct switch "
    "template this thread_local throw true try typedef typeid typename union unsigned using virtual void volatile "
    "wchar_t while xor xor_eq all clean edit_cache help install package package_source preinstall rebuild_cache test ";

bool is_small_letter(char c) { return c >= 'a' && c <= 'z'; }

bool is_taken(const std::string& name) { return kTaken.find(" " + name + " ") != std::string_view::npos; }

bool is_plugin_name(const std::string& name) {
  return !name.empty() && name.size() <= kMaxName && is_small_letter(name.front()) && name.back() != '_' &&
         name.find("__") == std::string::npos && std::all_of(name.begin(), name.end(), [](char c) {
           return is_small_letter(c) || config::is_digit(c) || c == '_';
         });
}

/// What somebody may have meant: "Thumb-Maker" is thumb_maker. Empty where nothing is near.
std::string nearest_name(const std::string& text) {
  std::string name;
  if (text.size() > 2 * kMaxName || std::any_of(text.begin(), text.end(), [](char c) { return c < 0; })) {
    return name;
  }
  for (const char small : lower_case(text)) {
    if (is_small_letter(small) || (config::is_digit(small) && !name.empty())) {
      name += small;
    } else if (!name.empty() && name.back() != '_') {
      name += '_';
    }
  }
  name.erase(name.find_last_not_of('_') + 1);
  return is_plugin_name(name) && !is_taken(name) ? name : std::string();
}

OrExit<std::string> plugin_name(const Arguments& arguments) {
  std::string name = arguments.get("name");
  if (is_taken(name)) {
    return Exit::usage("a plugin cannot be called " + name +
                       ": that word belongs to C++ or CMake; write another one, such as " + name + "_orders");
  }
  if (!is_plugin_name(name)) {
    const std::string nearest = nearest_name(name);
    return Exit::usage(
        "a plugin cannot be called \"" + std::string(cut_utf8(name, kMaxName)) +
        "\": its name is that of a file, a class and a queue; " +
        (nearest.empty()
             ? "write small letters, digits and single underscores, a letter first, at most " + std::to_string(kMaxName)
             : "write " + nearest));
  }
  return name;
}

/// thumb_maker is the class ThumbMaker.
std::string class_name(const std::string& plugin) {
  std::string name;
  bool starts = true;
  for (const char c : plugin) {
    if (c != '_') {
      name += starts && is_small_letter(c) ? static_cast<char>(c - 'a' + 'A') : c;
    }
    starts = c == '_';
  }
  return name;
}

std::string filled_in(std::string_view piece, const std::string& plugin) {
  std::string text(piece);
  boost::replace_all(text, "my_plugin", plugin);
  boost::replace_all(text, "MyPlugin", class_name(plugin));
  return text;
}

std::vector<std::string_view> wanted_parts(const Arguments& arguments) {
  const Kind* const found = find_where(kKinds, [&arguments](const Kind& kind) { return arguments.has(kind.flag); });
  const Kind& wanted = found == nullptr ? kKinds.front() : *found;
  std::vector<std::string_view> parts{"all"};
  parts.insert(parts.end(), wanted.parts.begin(), wanted.parts.end());
  if (arguments.has("ci")) {
    parts.emplace_back("ci");
  }
  return parts;
}

/// Makes a folder that is not there yet, and those above it.
OrExit<void> make_folder(const std::filesystem::path& folder) {
  SLUICE_PASS_ON(make_folder_of(folder));
  std::error_code failed;
  if (std::filesystem::create_directory(folder, failed)) {
    return {};
  }
  return Exit::failure(!failed || failed == std::errc::file_exists
                           ? folder.string() +
                                 " exists already, and nothing in it is touched; remove it, or name another "
                                 "folder with --dir"
                           : "cannot make the folder " + folder.string() + ": " + failed.message());
}

std::string next_steps(const std::string& plugin, const std::string& folder, std::size_t files) {
  return "made " + visible(folder) + ": " + counted(files, "file") + "\nnow:\n  cd " + visible(shell_word(folder)) +
         "\n  cmake -B build && cmake --build build && ctest --test-dir build --output-on-failure\n" +
         "  sluice dev --plugin build/" + plugin + ".so\n";
}

Exit new_plugin(const Arguments& arguments, Console& console) {
  SLUICE_TRY(name, plugin_name(arguments));
  const auto parts = wanted_parts(arguments);
  const std::string given = arguments.get("dir", *name);
  const std::filesystem::path normal = std::filesystem::path(given).lexically_normal();
  const std::filesystem::path folder = normal.has_filename() ? normal : normal.parent_path();
  SLUICE_PASS_ON(make_folder(folder));
  std::vector<std::string> files;
  for (const TemplateFile& file : plugin_template()) {
    if (!contains(parts, file.part)) {
      continue;
    }
    files.push_back(filled_in(file.path, *name));
    if (const auto written = write_file(folder / files.back(), filled_in(file.text, *name)); written.has_error()) {
      std::error_code ignored;
      std::filesystem::remove_all(folder, ignored);
      return written.error();
    }
  }
  std::sort(files.begin(), files.end());
  return show_result(console, next_steps(*name, folder.string(), files.size()), "plugin", *name, "folder",
                     folder.string(), "files", files);
}

}  // namespace

std::vector<Command> new_commands() {
  return {{
      .name = "new plugin",
      .summary = "Make a project for a plugin: handler, test, job, build",
      .usage = "NAME [--dir FOLDER] [--batch|--async|--c] [--ci] [--output json|text]",
      .description =
          "The project builds at once where the SDK is installed (package sluice-sdk): a handler with options, a unit "
          "test with the test kit, a job file, a host file for trying, CMakeLists.txt, README.md and .gitignore. NAME "
          "is what the plugin, its handler and its queue are called: small letters, digits and underscores.\n\n"
          "The folder must not be there yet. Nothing is ever overwritten.",
      .flags =
          joined({required(alone({"name", "NAME", "the plugin, as the plain word NAME"})),
                  {"dir", "FOLDER", "make the project there [default: NAME]"},
                  against("async|c", {"batch", {}, "a handler of whole batches of messages"}),
                  against("c", {"async", {}, "a handler that returns at once and completes later, as a coroutine"}),
                  {"c", {}, "in C11, against sluice/abi.h alone"},
                  {"ci", {}, "and a pipeline file that builds it, tests it and tries to break it"}},
                 text_output_flags()),
      .examples = "sluice new plugin thumbnails\n"
                  "sluice new plugin mailer --async --ci --dir work/mailer",
      .elsewhere = Output::text,
      .run = new_plugin,
  }};
}

}  // namespace sluice::cli
