#include "host/cli/options.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/algorithm/string/replace.hpp>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>

#include "base/text/utf8.hpp"
#include "host/cli/views/output.hpp"
#include "host/cli/words.hpp"

namespace sluice::cli {

namespace {

constexpr std::size_t kMaxShownColumns = 100;
constexpr double kMaxRate = 1'000'000;
constexpr double kMinRate = 1.0 / 3600;

std::vector<Flag> output_flags_with(std::string_view help) {
  return {{"output", "json|text", help}, against("output", {"json", {}, "the same as --output json"})};
}

/// The text with a caret below the place, where both fit on a line.
Exit syntax_error(const std::string& text, const operate::FilterError& error) {
  std::vector<std::string> lines{"--where, column " + std::to_string(error.column) + ": " + error.message};
  const bool one_line = std::none_of(text.begin(), text.end(), [](char byte) { return byte >= 0 && byte < ' '; });
  if (one_line && display_width(text) <= kMaxShownColumns) {
    std::size_t bytes = 0;
    for (std::size_t column = 0; bytes < text.size(); ++bytes) {
      column += continues_utf8(text[bytes]) ? 0 : 1;
      if (column == error.column) {
        break;
      }
    }
    lines.push_back("  " + text);
    lines.push_back("  " + std::string(display_width(text.substr(0, bytes)), ' ') + "^");
  }
  return {kExitUsage, std::move(lines)};
}

OrExit<void> read_attributes(const Arguments& arguments, queue::Attributes& attributes) {
  for (const std::string& pair : arguments.all("attr")) {
    const auto equals = pair.find('=');
    if (equals == std::string::npos || equals == 0) {
      return Exit::usage("--attr " + pair + ": write --attr name=value");
    }
    const std::string name = pair.substr(0, equals);
    if (!attributes.emplace(name, pair.substr(equals + 1)).second) {
      return Exit::usage("--attr " + name + " is given twice; give each name once");
    }
  }
  return {};
}

constexpr std::string_view kFromBody = "body:";

/// The JSON pointer to a member of the body itself.
std::string pointer_to(const std::string& member) {
  return "/" + boost::replace_all_copy(boost::replace_all_copy(member, "~", "~0"), "/", "~1");
}

/// A key as it is given: its own text, or "body:" and the member or JSON pointer at which each body has it.
OrExit<void> read_key(const Arguments& arguments, const std::string& flag, std::string& key, std::string& pointer) {
  if (!arguments.has(flag)) {
    return {};
  }
  const std::string given = arguments.get(flag);
  if (given.starts_with(kFromBody)) {
    const std::string where = given.substr(kFromBody.size());
    if (where.empty()) {
      return Exit::usage("--" + flag + " " + given +
                         ": after body: comes a member of the body or a JSON pointer, as in body:order_id or "
                         "body:/order/id");
    }
    pointer = where.front() == '/' ? where : pointer_to(where);
    return {};
  }
  if (arguments.reads_stdin()) {
    return Exit::usage("--" + flag + " " + given +
                       " would make all lines but one duplicates; take it from each line, " + "as in --" + flag +
                       " body:order_id");
  }
  key = given;
  return {};
}

}  // namespace

std::vector<Flag> joined(std::vector<Flag> first, const std::vector<Flag>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

std::vector<Flag> without_flag(std::vector<Flag> flags, std::string_view name) {
  std::erase_if(flags, [name](const Flag& flag) { return flag.name == name; });
  return flags;
}

std::vector<Flag> output_flags() {
  return joined(output_flags_with(
                    "how to show it [default: the SLUICE_OUTPUT variable, else text on a terminal and json in a pipe]"),
                {kWideFlag});
}

std::vector<Flag> text_output_flags() {
  return joined(output_flags_with("how to show it [default: the SLUICE_OUTPUT variable, else text]"), {kWideFlag});
}

std::vector<Flag> with_place_flags(std::vector<Flag> own, Outboxes outboxes) {
  const bool no_word = std::none_of(own.begin(), own.end(), [](const Flag& flag) { return flag.alone; });
  const std::string_view help =
      no_word || queue_stands_first(own)
          ? "the queue, as a plain word too [default: the only one of the host file, or the table's name]"
          : "the queue [default: the only one of the host file, or the table's name]";
  std::vector<Flag> place{
      {.name = "queue", .value = "QUEUE", .help = help, .alone = no_word},
      filled({"outbox", "NAME", "the rows of [outbox.NAME]: the same as --queue outbox:NAME"}),
      kConfigFlag,
      {.name = "table", .value = "TABLE", .help = "a DynamoDB table, without a host file", .alias = "table-name"},
      {.name = "index",
       .value = "INDEX",
       .help = "its index [default: dynamo-mq-index-queue_type-sent_at]",
       .alias = "index-name"},
      {.name = "endpoint", .value = "URL", .help = "DynamoDB's address [default: AWS's own]", .alias = "endpoint-url"},
      {"region", "REGION", "AWS region [default: from the environment or profile]"}};
  for (Flag& flag : place) {
    flag.common = true;
  }
  return joined(std::move(own), outboxes == Outboxes::taken ? place : without_flag(place, "outbox"));
}

std::vector<Flag> with_store_flags(std::vector<Flag> own, Outboxes outboxes) {
  own = with_place_flags(std::move(own), outboxes);
  for (Flag flag : output_flags()) {
    flag.common = true;
    own.push_back(flag);
  }
  return own;
}

OrExit<void> confirmed(const Arguments& arguments, Console& console, std::string_view question, std::string_view done) {
  return arguments.has("yes") || arguments.has("dry-run") || console.confirm(question)
             ? OrExit<void>()
             : Exit::failure("nothing was " + std::string(done));
}

bool lists_ids(const Arguments& arguments, const Console& console) {
  return arguments.has("ids") || !console.output_is_terminal();
}

queue::Half half_of(const Arguments& arguments) {
  return arguments.has("dlq") ? queue::Half::dlq : queue::Half::standard;
}

std::vector<queue::Half> halves_of(const Arguments& arguments) {
  return arguments.has("both") ? std::vector{queue::Half::standard, queue::Half::dlq} : std::vector{half_of(arguments)};
}

OrExit<double> parse_rate(const Arguments& arguments) {
  if (!arguments.has("rate")) {
    return 0.0;
  }
  const std::string text = arguments.get("rate");
  const char* const end = text.data() + text.size();
  double count = 0;
  const auto [rest, code] = std::from_chars(text.data(), end, count, std::chars_format::fixed);
  const std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  const double span = unit.empty() || unit == "/s" ? 1 : unit == "/m" ? 60 : unit == "/h" ? 3600 : 0;
  if (code == std::errc() && span > 0 && count / span >= kMinRate && count / span <= kMaxRate) {
    return count / span;
  }
  return Exit::usage("--rate " + text +
                     ": write a number of messages a second, such as 100/s, or 30/m, from 1/h to 1000000/s");
}

std::vector<Flag> filter_flags() {
  return {{"where", "FILTER", "only messages that match, such as 'receive_count > 3 and data.type = \"invoice\"'"},
          {"older-than", "TIME", "only those created longer ago than that, such as 1h"},
          filled({"error", "CAUSE",
                  "only those that failed for it: a fingerprint that `sluice dlq` shows, or such an error's text"}),
          filled({"error-like", "TEXT", "only those whose last error holds TEXT; * is any text"})};
}

OrExit<operate::Filter> parse_filter(const Arguments& arguments) {
  operate::Filter filter;
  if (arguments.has("where")) {
    const std::string text = arguments.get("where");
    auto parsed = operate::Filter::parse(text);
    if (parsed.has_error()) {
      return syntax_error(text, parsed.error());
    }
    filter = std::move(*parsed);
  }
  if (arguments.has("older-than")) {
    SLUICE_TRY(age, arguments.duration("older-than", Duration{}));
    filter = filter.also(operate::Filter::older_than(*age));
  }
  if (arguments.has("error")) {
    filter = filter.also(operate::Filter::error_of(arguments.get("error")));
  }
  if (arguments.has("error-like")) {
    filter = filter.also(operate::Filter::error_like(arguments.get("error-like")));
  }
  return filter;
}

std::vector<std::string> message_ids(const Arguments& arguments) {
  // The first of each stays where it is.
  std::vector<std::string> once;
  for (std::string& id : arguments.all("id")) {
    if (std::find(once.begin(), once.end(), id) == once.end()) {
      once.push_back(std::move(id));
    }
  }
  return once;
}

OrExit<std::string> the_message_id(const Arguments& arguments) {
  auto ids = message_ids(arguments);
  if (ids.empty()) {
    return Exit::usage("which message? Write its id");
  }
  if (ids.size() > 1) {
    return Exit::usage("one message at a time; leave out " + ids[1]);
  }
  return std::move(ids.front());
}

OrExit<operate::MessageTemplate> read_template(const Arguments& arguments) {
  operate::MessageTemplate made;
  queue::NewMessage& shared = made.shared;
  SLUICE_PASS_ON(read_attributes(arguments, shared.attributes));
  SLUICE_TRY(delay, arguments.duration("delay", shared.delay));
  shared.delay = *delay;
  SLUICE_PASS_ON(read_key(arguments, "dedup-id", shared.dedup_id, made.dedup_from));
  SLUICE_PASS_ON(read_key(arguments, "unique-key", shared.unique_key, made.unique_from));
  SLUICE_TRY(window, arguments.duration("dedup-window", shared.dedup_window, queue::kLeastDedupWindow,
                                        queue::kLongestDedupWindow));
  shared.dedup_window = *window;
  const bool while_queued = arguments.get("unique") == "while-queued";
  shared.unique_until = while_queued ? queue::UniqueUntil::claimed : queue::UniqueUntil::done;
  shared.group = arguments.get("group");
  shared.priority = queue::priority_named(arguments.get("priority")).value_or(shared.priority);
  made.content_type = arguments.get("content-type");
  return made;
}

OrExit<Descriptor> open_named(const Arguments& arguments, const std::string& option) {
  const std::string name = arguments.get(option);
  Descriptor file(::open(name.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (file.open() && ::fstat(file.get(), &status) == 0 && !S_ISDIR(status.st_mode)) {
    return file;
  }
  std::string why = std::strerror(S_ISDIR(status.st_mode) ? EISDIR : errno);
  if (name == "-") {
    const bool takes_lines = arguments.command() != nullptr && arguments.command()->stdin_operand;
    why += takes_lines ? "; for JSON lines on standard input write - alone, for all of it as one file --"
                       : "; for standard input write --";
    why += option + " /dev/stdin";
  }
  return Exit::failure("--" + option + " " + name + ": " + why);
}

OrExit<std::string> read_named(const Arguments& arguments, const std::string& option) {
  constexpr std::size_t kMostBytes = 64UL * 1024 * 1024;
  SLUICE_TRY(file, open_named(arguments, option));
  std::string bytes;
  std::array<char, 64 * 1024> piece;
  ssize_t got = 0;
  while (bytes.size() <= kMostBytes &&
         ((got = ::read(file->get(), piece.data(), piece.size())) > 0 || (got < 0 && errno == EINTR))) {
    bytes.append(piece.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  }
  if (got != 0) {
    return Exit::failure("--" + option + " " + arguments.get(option) + ": " +
                         (got < 0 ? std::strerror(errno) : "larger than 64 MiB"));
  }
  return bytes;
}

OrExit<void> make_folder_of(const std::filesystem::path& path) {
  std::error_code failed;
  if (path.has_parent_path() && !std::filesystem::create_directories(path.parent_path(), failed) && failed) {
    return Exit::failure("cannot make the folder " + path.parent_path().string() + ": " + failed.message());
  }
  return {};
}

OrExit<void> write_file(const std::filesystem::path& path, const std::string& text) {
  SLUICE_PASS_ON(make_folder_of(path));
  std::ofstream file(path, std::ios::binary);
  file << text;
  return file.flush() ? OrExit<void>() : Exit::failure("cannot write " + path.string() + ": " + std::strerror(errno));
}

std::string counted(std::uint64_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace sluice::cli
