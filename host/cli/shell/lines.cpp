#include <fcntl.h>
#include <histedit.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>

#include "base/descriptor.hpp"
#include "base/text/utf8.hpp"
#include "config/config.hpp"
#include "host/cli/console.hpp"
#include "host/cli/shell/shell.hpp"
#include "host/cli/views/output.hpp"
#include "host/isolation/state_folder.hpp"

namespace sluice::cli {

namespace {

constexpr int kHistorySize = 1000;
constexpr std::size_t kShownCandidates = 100;

struct EditLineDeleter {
  void operator()(EditLine* editor) const { ::el_end(editor); }
};
struct HistoryDeleter {
  void operator()(History* history) const { ::history_end(history); }
};

/// Line editing counts in characters, so the terminal's encoding has to be known; UTF-8 where nothing is said.
void know_the_encoding() {
  if (std::setlocale(LC_CTYPE, "") == nullptr || MB_CUR_MAX == 1) {
    std::setlocale(LC_CTYPE, "C.UTF-8");
  }
}

/// What all words begin with; never the half of a character.
std::string common_start(const std::vector<std::string>& words) {
  std::string common = words.front();
  for (const std::string& word : words) {
    const auto differ = std::mismatch(common.begin(), common.end(), word.begin(), word.end());
    common.erase(differ.first, common.end());
  }
  while (!common.empty() && count_utf8(common) != 0 && common.size() < words.front().size() &&
         continues_utf8(words.front()[common.size()])) {
    common.pop_back();
  }
  return common;
}

/// The candidates in columns, below the line that is edited.
void show_candidates(const std::vector<std::string>& words) {
  const std::size_t shown = std::min(words.size(), kShownCandidates);
  std::size_t width = 0;
  for (std::size_t index = 0; index < shown; ++index) {
    width = std::max(width, display_width(words[index]) + 2);
  }
  const std::size_t columns = std::max<std::size_t>(1, terminal_size(STDOUT_FILENO).columns / width);
  std::string text = "\n";
  for (std::size_t index = 0; index < shown; ++index) {
    const bool ends_row = (index + 1) % columns == 0 || index + 1 == shown;
    text += words[index];
    text += ends_row ? std::string("\n") : std::string(width - display_width(words[index]), ' ');
  }
  if (shown < words.size()) {
    text += "and " + std::to_string(words.size() - shown) + " more\n";
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

class EditedLines {
 public:
  EditedLines(const std::vector<std::string>& history, std::function<Completion(std::string_view)> complete)
      : complete_(std::move(complete)),
        editor_(::el_init("sluice", stdin, stdout, stderr)),
        history_(::history_init()) {
    if (!usable()) {
      return;
    }
    HistEvent event;
    ::history(history_.get(), &event, H_SETSIZE, kHistorySize);
    ::history(history_.get(), &event, H_SETUNIQUE, 1);
    for (const std::string& line : history) {
      remember(line);
    }
    configure();
  }

  bool usable() const { return editor_ != nullptr && history_ != nullptr; }

  TypedLine read(const std::string& prompt) {
    // Only one line of a prompt can be redrawn.
    const auto last = prompt.rfind('\n');
    const std::string above = last == std::string::npos ? std::string() : prompt.substr(0, last + 1);
    std::fwrite(above.data(), 1, above.size(), stdout);
    std::fflush(stdout);
    prompt_ = prompt.substr(above.size());
    dropped_ = false;
    int count = 0;
    errno = 0;
    const char* text = ::el_gets(editor_.get(), &count);
    if (dropped_ || (text == nullptr && errno == EINTR)) {
      return {.kind = TypedLine::Kind::dropped, .text = {}};
    }
    if (text == nullptr || count <= 0) {
      std::fwrite("\n", 1, 1, stdout);
      std::fflush(stdout);
      return {};
    }
    std::string line(text);
    while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) {
      line.pop_back();
    }
    if (!line.empty()) {
      remember(line);
    }
    return {.kind = TypedLine::Kind::text, .text = std::move(line)};
  }

 private:
  /// For the arrow keys.
  void remember(const std::string& line) {
    HistEvent event;
    ::history(history_.get(), &event, H_ENTER, line.c_str());
  }

  static EditedLines& self(EditLine* editor) {
    void* data = nullptr;
    ::el_get(editor, EL_CLIENTDATA, &data);
    return *static_cast<EditedLines*>(data);
  }

  static char* show_prompt(EditLine* editor) { return self(editor).prompt_.data(); }

  static unsigned char drop_line(EditLine* editor, wint_t) {
    self(editor).dropped_ = true;
    std::fwrite("^C\n", 1, 3, stdout);
    std::fflush(stdout);
    return CC_NEWLINE;
  }

  static unsigned char suspend(EditLine* editor, wint_t) {
    // Not by the editor's own handler, which works once a line and leaves the line undrawn.
    ::el_set(editor, EL_PREP_TERM, 0);
    {
      const SignalAction usual(SIGTSTP, SIG_DFL);
      ::kill(0, SIGTSTP);  // whoever started this shell in its own group stops too, as by the terminal
    }
    ::el_set(editor, EL_PREP_TERM, 1);
    return CC_REDISPLAY;
  }

  static unsigned char complete_word(EditLine* editor, wint_t) {
    const LineInfo* line = ::el_line(editor);
    const std::string before(line->buffer, line->cursor);
    const Completion found = self(editor).complete_(before);
    if (found.words.empty()) {
      return CC_REFRESH_BEEP;
    }
    const bool only = found.words.size() == 1;
    const std::string typed = before.substr(before.size() - found.replaced);
    std::string inserted = common_start(found.words);
    if (only && inserted.back() != '=') {
      inserted += ' ';
    }
    if (inserted.size() > typed.size() || (only && inserted != typed)) {
      ::el_deletestr(editor, static_cast<int>(count_utf8(typed)));
      ::el_insertstr(editor, inserted.c_str());
      return CC_REFRESH;
    }
    show_candidates(found.words);
    return CC_REDISPLAY;
  }

  void configure() {
    EditLine* editor = editor_.get();
    ::el_set(editor, EL_CLIENTDATA, this);
    ::el_set(editor, EL_PROMPT, &EditedLines::show_prompt);
    ::el_set(editor, EL_SIGNAL, 1);
    ::el_set(editor, EL_EDITOR, "emacs");
    ::el_set(editor, EL_HIST, &::history, history_.get());
    // By the wide form: the other one copies the names and forgets them.
    ::el_wset(editor, EL_ADDFN, L"sluice-complete", L"Complete the word", &EditedLines::complete_word);
    ::el_set(editor, EL_BIND, "^I", "sluice-complete", nullptr);
    ::el_set(editor, EL_BIND, "^R", "em-inc-search-prev", nullptr);
    // What terminals send for Delete, Home, End and Ctrl with an arrow, besides what their description says.
    ::el_set(editor, EL_BIND, "\\e[3~", "ed-delete-next-char", nullptr);
    ::el_set(editor, EL_BIND, "\\e[1~", "ed-move-to-beg", nullptr);
    ::el_set(editor, EL_BIND, "\\e[4~", "ed-move-to-end", nullptr);
    ::el_set(editor, EL_BIND, "\\e[1;5C", "em-next-word", nullptr);
    ::el_set(editor, EL_BIND, "\\e[1;5D", "ed-prev-word", nullptr);
    ::el_source(editor, nullptr);
    // The keys of signals are keys like any other while a line is edited, and signals again while a command runs.
    ::el_set(editor, EL_SETTY, "-d", "-isig", nullptr);
    ::el_wset(editor, EL_ADDFN, L"sluice-drop-line", L"Begin a new line", &EditedLines::drop_line);
    ::el_set(editor, EL_BIND, "^C", "sluice-drop-line", nullptr);
    ::el_wset(editor, EL_ADDFN, L"sluice-suspend", L"Go to the background", &EditedLines::suspend);
    ::el_set(editor, EL_BIND, "^Z", "sluice-suspend", nullptr);
  }

  std::function<Completion(std::string_view)> complete_;
  std::unique_ptr<EditLine, EditLineDeleter> editor_;
  std::unique_ptr<History, HistoryDeleter> history_;
  std::string prompt_;
  bool dropped_ = false;
};

constexpr std::size_t kMaxLine = 1024 * 1024;

bool take_byte(int descriptor, char& byte) {
  ssize_t count = 0;
  do {
    count = ::read(descriptor, &byte, 1);
  } while (count < 0 && errno == EINTR);
  return count == 1;
}

constexpr std::size_t kKept = 1000;
constexpr std::size_t kCutAbove = 2 * kKept;
constexpr std::size_t kMaxRemembered = 4096;
constexpr mode_t kOwnerOnly = 0600;

/// Opens it for its owner alone, whatever mode it has had so far.
Descriptor open_owned(const std::string& path, int flags) {
  Descriptor file(::open(path.c_str(), flags | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kOwnerOnly));
  return file.open() && ::fchmod(file.get(), kOwnerOnly) == 0 ? std::move(file) : Descriptor();
}

void replace(const std::string& path, const std::vector<std::string>& lines) {
  const std::string fresh = path + ".new";
  const Descriptor file = open_owned(fresh, O_WRONLY | O_TRUNC);
  std::string text;
  for (const std::string& line : lines) {
    text += line + "\n";
  }
  std::error_code ignored;
  if (file.open() && write_all(file.get(), text)) {
    std::filesystem::rename(fresh, path, ignored);
  } else if (file.open()) {
    std::filesystem::remove(fresh, ignored);
  }
}

}  // namespace

TypedLine read_plain_line(int descriptor) {
  TypedLine line{.kind = TypedLine::Kind::text, .text = {}};
  char byte = 0;
  bool any = false;
  while (take_byte(descriptor, byte) && byte != '\n') {
    any = true;
    if (line.text.size() < kMaxLine) {
      line.text += byte;
    } else {
      line.kind = TypedLine::Kind::too_long;
    }
  }
  if (!any && byte != '\n') {
    return {};
  }
  if (!line.text.empty() && line.text.back() == '\r') {
    line.text.pop_back();
  }
  return line;
}

std::optional<HistoryFile> HistoryFile::at_usual_place(const std::string& name) {
  const config::Environment variables = config::process_environment();
  const std::string state = variables("XDG_STATE_HOME").value_or("");
  // The XDG rules: a relative path is as good as none.
  if (!state.empty() && state.front() == '/') {
    return HistoryFile(state + "/sluice/" + name);
  }
  const std::string home = variables("HOME").value_or("");
  if (home.empty() || home.front() != '/') {
    return std::nullopt;
  }
  return HistoryFile(home + "/.local/state/sluice/" + name);
}

std::vector<std::string> HistoryFile::load() const {
  std::ifstream file(path_);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line.size() <= kMaxRemembered) {
      lines.push_back(std::move(line));
    }
  }
  if (lines.size() <= kKept) {
    return lines;
  }
  const bool grown = lines.size() > kCutAbove;
  lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(kKept));
  if (grown) {
    replace(path_, lines);
  }
  return lines;
}

void HistoryFile::append(const std::string& line) const {
  if (line.empty() || line.size() > kMaxRemembered || line.find('\n') != std::string::npos) {
    return;
  }
  static_cast<void>(isolation::make_private_folder(std::filesystem::path(path_).parent_path()));
  // One write of a file opened for appending is never mixed with another's.
  if (const Descriptor file = open_owned(path_, O_WRONLY | O_APPEND); file.open()) {
    write_all(file.get(), line + "\n");
  }
}

ReadLine edited_lines(const std::vector<std::string>& history,
                      std::function<Completion(std::string_view before_cursor)> complete) {
  know_the_encoding();
  const auto lines = std::make_shared<EditedLines>(history, std::move(complete));
  return lines->usable() ? [lines](const std::string& prompt) { return lines->read(prompt); } : ReadLine();
}

}  // namespace sluice::cli
