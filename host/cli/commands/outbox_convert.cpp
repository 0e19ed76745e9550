#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/descriptor.hpp"
#include "base/text/json_writer.hpp"
#include "config/syntax.hpp"
#include "host/cli/command.hpp"
#include "host/cli/convert/conversion.hpp"

namespace sluice::cli {

namespace {

using convert::Conversion;
using convert::NewFile;

OrExit<std::string> read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return Exit::failure("cannot read " + path + ": " + std::strerror(errno));
  }
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (file.bad()) {
    return Exit::failure("cannot read " + path);
  }
  return text;
}

/// Passwords may stand in them, so that nobody but their owner reads them.
std::optional<std::string> write_new(const std::filesystem::path& path, const std::string& text) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  std::size_t written = 0;
  while (file.open() && written < text.size()) {
    const auto part = ::write(file.get(), text.data() + written, text.size() - written);
    if (part < 0 && errno != EINTR) {
      break;
    }
    written += part < 0 ? 0 : static_cast<std::size_t>(part);
  }
  if (file.open() && written == text.size()) {
    return std::nullopt;
  }
  return "cannot write " + path.string() + ": " + std::strerror(errno);
}

Exit write_files(const std::filesystem::path& folder, const std::vector<NewFile>& files) {
  for (const NewFile& file : files) {
    std::error_code ignored;
    if (std::filesystem::exists(std::filesystem::symlink_status(folder / file.path, ignored))) {
      return Exit::failure((folder / file.path).string() +
                           " is there already and is not overwritten; name another folder");
    }
  }
  for (const NewFile& file : files) {
    const auto path = folder / file.path;
    std::error_code failed;
    std::filesystem::create_directories(path.parent_path(), failed);
    if (failed) {
      return Exit::failure("cannot make the folder " + path.parent_path().string() + ": " + failed.message());
    }
    if (const auto why = write_new(path, file.text)) {
      return Exit::failure(*why);
    }
  }
  return Exit::ok();
}

std::string as_text(const std::string& source, const std::string& folder, const Conversion& conversion) {
  std::string text;
  for (const NewFile& file : conversion.files) {
    text += "written: " + (std::filesystem::path(folder) / file.path).string() + "\n";
  }
  for (const convert::Remark& remark : conversion.remarks) {
    text +=
        source + ":" + std::to_string(remark.line) + ": " + config::one_line(remark.field + ": " + remark.what) + "\n";
  }
  return text;
}

std::string as_json(const std::string& folder, const Conversion& conversion) {
  JsonWriter json(JsonWriter::Layout::indented);
  json.begin_object();
  json.key("files");
  json.begin_array();
  for (const NewFile& file : conversion.files) {
    json.value((std::filesystem::path(folder) / file.path).string());
  }
  json.end_array();
  json.key("remarks");
  json.begin_array();
  for (const convert::Remark& remark : conversion.remarks) {
    json.begin_object();
    json.member("line", static_cast<std::uint64_t>(remark.line));
    json.member("field", remark.field);
    json.member("remark", remark.what);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return json.take_line();
}

Exit convert_file(const Arguments& arguments, Console& console) {
  const std::string name = arguments.get("name", "outbox");
  if (const char* expected = config::name_complaint(name)) {
    return Exit::usage("--name must be " + std::string(expected));
  }
  const std::string source = arguments.get("file");
  SLUICE_TRY(text, read_all(source));
  const Conversion conversion = convert::convert_worker_file(*text, name, config::process_environment());
  if (!conversion.complaints.empty()) {
    return {kExitConfiguration, source + ": " + config::one_line(conversion.complaints)};
  }
  const std::string folder = arguments.get("output");
  if (Exit written = write_files(folder, conversion.files); written.code() != kExitOk) {
    return written;
  }
  console.out(arguments.has("json") ? as_json(folder, conversion) : as_text(source, folder, conversion));
  return Exit::ok();
}

}  // namespace

Command outbox_convert_command() {
  return {
      .name = "outbox convert",
      .group = "Outboxes",
      .summary = "Turn the YAML of outbox-worker into a host file and job files",
      .usage = "FILE --output FOLDER [OPTION]...",
      .description =
          "FILE is what n-creativesystem/outbox-worker was started with. Its templates (${VAR:-default} and the like) "
          "stay "
          "variables wherever our files have them; where they do not, what they stand for now is written. Into FOLDER "
          "go "
          "host.toml and a job file for each publisher; files that are there are not overwritten. What could not be "
          "carried "
          "over, or means something else, is printed line by line with the place in FILE and the reason. A field that "
          "is "
          "missing or wrong is named as outbox-worker names it, and nothing is written. No value of the file is ever "
          "printed, for it may be a password.",
      .flags = {{.name = "file", .value = "FILE", .help = "the YAML of outbox-worker", .required = true},
                {.name = "output",
                 .value = "FOLDER",
                 .help = "where the new files go; made where it is not there",
                 .required = true},
                {.name = "name", .value = "NAME", .help = "what the outbox is called in them [default: outbox]"},
                {.name = "json", .value = {}, .help = "print files and remarks as JSON"}},
      .positional = {"file"},
      .examples =
          "sluice outbox convert outbox_polling.yaml --output sluice\n"
          "sluice outbox convert --file outbox_polling.yaml --output /etc/sluice --name orders",
      .run = convert_file,
  };
}

}  // namespace sluice::cli
