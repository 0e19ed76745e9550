#include <algorithm>
#include <array>
#include <set>
#include <span>

#include "base/ranges.hpp"
#include "base/shell_word.hpp"
#include "base/text/utf8.hpp"
#include "base/text/visible.hpp"
#include "host/cli/help.hpp"
#include "host/cli/shell/shell.hpp"
#include "host/cli/words.hpp"

namespace sluice::cli {

namespace {

using Words = std::vector<std::string>;

// They take the terminal and the signals for themselves.
constexpr std::array<std::string_view, 3> kElsewhere{"run", "dev", "shell"};
// The selected message is not meant: they name one that is not there yet, or are about a whole queue.
constexpr std::array<std::string_view, 3> kOwnIds{"send", "enqueue-test", "purge"};
// With one of these a command is about many messages.
constexpr std::array<std::string_view, 5> kSelectors{"where", "older-than", "error", "error-like", "all"};
// They hold what messages hold, and are not written to a file.
constexpr std::array<std::string_view, 7> kContent{"data", "text", "attr", "set", "where", "error", "error-like"};

constexpr std::size_t kRecentIds = 100;
constexpr std::size_t kWidestId = 40;

bool can_be_typed(const Command& command) { return !contains(kElsewhere, command.name); }

/// The shell's own words, which take no options, and may be typed beside the commands.
const std::vector<Command>& own_words() {
  static const std::vector<Command> kOwn{
      {.name = "use",
       .summary = "Go to another queue",
       .usage = "QUEUE",
       .flags = {{.name = "queue", .value = "QUEUE", .alone = true}}},
      {.name = "id",
       .summary = "Select a message for the commands that take --id; alone, select none",
       .usage = "[ID]",
       .flags = {{.name = "id", .value = "ID", .alone = true}}},
      {.name = "help", .summary = "This text, or all about one command", .usage = "[COMMAND]"},
      {.name = "quit", .summary = "End, as Ctrl-D does"},
      {.name = "exit", .summary = "The same"}};
  return kOwn;
}

bool is_own(std::string_view word) { return find_command(own_words(), word) != nullptr; }

/// All that a line may begin with.
const std::vector<Command>& typed_words() {
  static const std::vector<Command> kWords = [] {
    std::vector<Command> words = own_words();
    std::copy_if(commands().begin(), commands().end(), std::back_inserter(words), can_be_typed);
    return words;
  }();
  return kWords;
}

/// What a line says to the command that it names.
Arguments read(const Command& command, const Words& words) {
  return Arguments::of_line(command, std::span(words).subspan(command.name_words()));
}

/// Visible, and cut where it is long for a line of its own.
std::string clipped(std::string_view text) {
  std::string line = visible(text);
  if (line.size() > kWidestId) {
    line = std::string(cut_utf8(line, kWidestId - 3)) + "...";
  }
  return line;
}

std::string help_text() {
  constexpr std::size_t kColumn = 20;
  std::string text =
      "The options that this shell was started with, the queue and the selected message\n"
      "are added to each command that takes them and does not name its own.\n\nIn this shell:\n";
  for (const Command& own : own_words()) {
    std::string row = "  " + std::string(own.name) + " " + std::string(own.usage);
    row.resize(std::max(row.size() + 1, kColumn), ' ');
    text += row + std::string(own.summary) + "\n";
  }
  return text + listed_commands(can_be_typed);
}

/// Where the last word of a half-written line begins; nothing when it is quoted, which completion leaves alone.
std::optional<std::size_t> start_of_last_word(std::string_view line) {
  const auto space = line.find_last_of(" \t");
  const std::size_t start = space == std::string_view::npos ? 0 : space + 1;
  const bool plain = line.substr(start).find_first_of("'\"\\") == std::string_view::npos;
  return plain && split_words(line.substr(0, start)).has_value() ? std::optional(start) : std::nullopt;
}

class QueueShell final : public Shell {
 public:
  QueueShell(RememberedOptions options, QueueShellSurroundings surroundings, Console& console)
      : options_(std::move(options)), surroundings_(std::move(surroundings)), console_(console) {}

  std::string greeting() const override { return "`help` lists the commands, Ctrl-D ends.\n"; }

  std::string prompt() const override {
    const auto queue = options_.find("queue");
    std::string text = "sluice";
    if (queue != options_.end()) {
      text += " " + visible(queue->second);
    }
    if (!selected_.empty()) {
      text += " " + clipped(selected_);
    }
    return text + "> ";
  }

  Next step(const std::string& line) override {
    listed_.reset();
    const auto words = split_words(line);
    if (words.has_error()) {
      console_.note(words.error().message());
      last_failure_ = kExitUsage;
      return Next::go_on;
    }
    if (words->empty()) {
      return Next::go_on;
    }
    const std::string& first = words->front();
    if (first == "quit" || first == "exit" || first == "q") {
      return Next::end;
    }
    const bool asks = first == "help" || first == "?";
    const int code = asks             ? help(*words)
                     : first == "use" ? use(*words)
                     : first == "id"  ? select(*words)
                                      : run_command(*words);
    last_failure_ = code == kExitOk ? last_failure_ : code;
    return Next::go_on;
  }

  Completion complete(std::string_view before_cursor) override {
    const auto start = start_of_last_word(before_cursor);
    if (!start) {
      return {};
    }
    std::string_view typed = before_cursor.substr(*start);
    const auto before = split_words(before_cursor.substr(0, *start));
    // Of "--queue=or" only the value is replaced.
    if (const auto equals = typed.find('='); !option_name(typed).empty() && equals != std::string_view::npos) {
      Words with_option = *before;
      with_option.emplace_back(typed.substr(0, equals));
      typed.remove_prefix(equals + 1);
      return {.replaced = typed.size(), .words = candidates(with_option, typed)};
    }
    return {.replaced = typed.size(), .words = candidates(*before, typed)};
  }

  bool may_be_kept(const std::string& line) const override {
    const auto words = split_words(line);
    return words.has_value() && !words->empty() && line.front() != ' ' &&
           std::none_of(words->begin(), words->end(),
                        [](const std::string& word) { return contains(kContent, option_name(word)); });
  }

  std::string farewell() const override { return {}; }
  int last_failure() const override { return last_failure_; }

 private:
  // Each does a line, and returns its exit code.

  int help(const Words& words) {
    if (words.size() == 1 || is_own(words[1])) {
      console_.out(help_text());
      return kExitOk;
    }
    Words line = words;
    line.front() = "help";
    return surroundings_.run(line, {});
  }

  int use(const Words& words) {
    if (words.size() != 2 || words[1].empty()) {
      console_.note("use takes the name of one queue: use QUEUE");
      return kExitUsage;
    }
    RememberedOptions there = options_;
    // Without a host file a queue is a table.
    if (there.find("table") != there.end()) {
      there.insert_or_assign("table", words[1]);
    }
    there.insert_or_assign("queue", words[1]);
    const Exit opened = surroundings_.try_open(there);
    for (const std::string& line : opened.lines()) {
      console_.note("use: " + line);
    }
    if (opened.code() == kExitOk) {
      selected_.clear();
      recent_.clear();
      options_ = std::move(there);
    }
    return opened.code();
  }

  int select(const Words& words) {
    if (words.size() == 1) {
      selected_.clear();
      return kExitOk;
    }
    if (words.size() != 2 || words[1].empty()) {
      console_.note("id takes one id: id ID");
      return kExitUsage;
    }
    const int code = run(*find_command("get"), {"get", "--id=" + words[1]});
    if (code == kExitOk) {
      selected_ = words[1];
      note_id(selected_);
    }
    return code;
  }

  int run_command(const Words& words) {
    const std::string& first = words.front();
    const Command* command = find_command(commands(), words);
    const Words known = first_words(typed_words());
    if (command == nullptr && std::find(known.begin(), known.end(), first) == known.end()) {
      const auto meant = nearest_word(first, known);
      console_.note("unknown command \"" + clipped(first) + "\"; " +
                    (meant ? "did you mean " + *meant + "?" : "`help` lists them"));
      return kExitUsage;
    }
    if (command == nullptr) {
      return surroundings_.run(words, {});
    }
    if (!can_be_typed(*command)) {
      console_.note("`" + first + "` needs a terminal of its own; end this shell first");
      return kExitUsage;
    }
    const Arguments line = read(*command, words);
    for (const std::string& id : line.all("id")) {
      note_id(id);
    }
    return run(*command, words);
  }

  int run(const Command& command, const Words& words) {
    Arguments line = read(command, words);
    const bool here = !line.has("queue") && !line.has("config") && !line.has("table");
    const RememberedOptions remembered = remembered_for(line, here);
    const int code = surroundings_.run(words, remembered);
    line.add(line.unsaid(remembered));
    const bool removes = command.name == "delete" || command.name == "cancel";
    if (code == kExitOk && removes && here && !line.wants_help() && !line.has("dry-run") &&
        contains(line.all("id"), selected_)) {
      selected_.clear();
    }
    return code;
  }

  /// What is remembered, for such a line. `here`: it is about the queue in use, as far as its options say.
  RememberedOptions remembered_for(const Arguments& line, bool here) const {
    RememberedOptions remembered = options_;
    const bool queue_first = queue_stands_first(line.command()->flags) && !line.plain().empty();
    if (queue_first && contains(surroundings_.queues(), line.plain().front())) {
      remembered.erase("queue");
    }
    // The selected message is one of the queue that is in use, and another queue may have one of its id.
    const bool selects = std::any_of(kSelectors.begin(), kSelectors.end(), [&](auto name) { return line.has(name); });
    if (!selected_.empty() && here && !selects && !contains(kOwnIds, line.command()->name)) {
      remembered.emplace("id", selected_);
    }
    return remembered;
  }

  void note_id(const std::string& id) {
    if (!id.empty() && std::find(recent_.begin(), recent_.end(), id) == recent_.end()) {
      recent_.push_back(id);
      recent_.erase(recent_.begin(), recent_.end() - static_cast<std::ptrdiff_t>(std::min(recent_.size(), kRecentIds)));
    }
  }

  std::vector<std::string> candidates(Words before, std::string_view typed) {
    const bool takes_options = before.empty() || !is_own(before.front());
    before.emplace_back(typed);
    const auto known = [this](std::string_view kind, const Arguments& line) {
      return kind == "ID" ? known_ids() : kind == "QUEUE" ? surroundings_.queues() : names_in_files(kind, line);
    };
    std::set<std::string> fitting;
    for (const auto& word : suggest(typed_words(), before, options_, known).words) {
      if (can_stand_on_line(word.text) && (takes_options || option_name(word.text).empty())) {
        fitting.insert(shell_word(word.text));
      }
    }
    return {fitting.begin(), fitting.end()};
  }

  std::vector<std::string> known_ids() {
    if (!listed_) {
      listed_ = surroundings_.ids(options_);
    }
    Words ids = *listed_;
    ids.insert(ids.end(), recent_.begin(), recent_.end());
    return ids;
  }

  RememberedOptions options_;
  QueueShellSurroundings surroundings_;
  Console& console_;
  int last_failure_ = kExitOk;
  std::string selected_;                            // an id; empty: none
  std::vector<std::string> recent_;                 // ids that were named
  std::optional<std::vector<std::string>> listed_;  // ids that the store gave, until the next command
};

}  // namespace

std::unique_ptr<Shell> queue_shell(RememberedOptions options, QueueShellSurroundings surroundings, Console& console) {
  return std::make_unique<QueueShell>(std::move(options), std::move(surroundings), console);
}

}  // namespace sluice::cli
