#include "host/cli/views/output.hpp"

#include <algorithm>
#include <array>
#include <boost/core/noncopyable.hpp>
#include <clocale>
#include <cwchar>
#include <iterator>

#include "base/assert.hpp"
#include "base/ranges.hpp"
#include "base/text/base64.hpp"
#include "base/text/json_check.hpp"
#include "base/text/lower_case.hpp"
#include "base/text/utf8.hpp"
#include "base/text/visible.hpp"
#include "host/cli/words.hpp"

namespace sluice::cli {

namespace {

constexpr std::string_view kGap = "  ";
constexpr std::string_view kEllipsis = "\xe2\x80\xa6";

/// The C library measures characters by the thread's locale; this one sets it for a scope.
class Utf8Locale : boost::noncopyable {
 public:
  Utf8Locale() : previous_(kLocale == nullptr ? nullptr : ::uselocale(kLocale)) {}
  ~Utf8Locale() {
    if (previous_ != nullptr) {
      ::uselocale(previous_);
    }
  }

 private:
  // Lives as long as the process.
  static inline const locale_t kLocale = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  locale_t previous_;
};

/// Walks over `text` until `room` columns are used up; the bytes walked over. Sets the columns they take.
std::size_t walk(std::string_view text, std::size_t room, std::size_t& columns) {
  const Utf8Locale locale;
  std::mbstate_t state{};
  std::size_t at = 0;
  columns = 0;
  while (at < text.size()) {
    if (text[at] == '\x1b') {  // a colour
      at = std::min(text.find('m', at), text.size() - 1) + 1;
      continue;
    }
    wchar_t character = 0;
    const std::size_t length = std::mbrtowc(&character, text.data() + at, text.size() - at, &state);
    const bool broken = length == 0 || length > text.size() - at;
    const int width = broken ? 1 : ::wcwidth(character);
    const std::size_t takes = width < 0 ? 1 : static_cast<std::size_t>(width);
    if (columns + takes > room) {
      break;
    }
    columns += takes;
    at += broken ? 1 : length;
    if (broken) {
      state = std::mbstate_t{};
    }
  }
  return at;
}

/// By the colour.
constexpr std::array<std::string_view, 5> kCodes{"", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m"};
static_assert(static_cast<int>(Colour::yellow) == 4);

/// No wider than `room`, which is not 0: without its end, or without its middle.
std::string cut(const std::string& text, std::size_t room, bool prose) {
  const std::size_t width = display_width(text);
  if (width <= room) {
    return text;
  }
  const std::size_t tail = prose ? 0 : (room - 1) / 2;
  std::size_t columns = 0;
  const std::string head = text.substr(0, walk(text, room - 1 - tail, columns));
  std::size_t end = walk(text, width - tail, columns);
  while (display_width(std::string_view(text).substr(end)) > tail) {
    end += std::max<std::size_t>(utf8_length(std::string_view(text).substr(end)), 1);  // a wide character lies across
  }
  return head + std::string(kEllipsis) + text.substr(end);
}

/// The length of the word that `text` begins with; what stands in brackets is one word if it fits on a line.
std::size_t word_length(std::string_view text, std::size_t room) {
  const auto end = std::min(text.find(' '), text.size());
  if (text.empty() || (text.front() != '[' && text.front() != '(')) {
    return end;
  }
  const auto close = text.find(text.front() == '[' ? ']' : ')');
  if (close == std::string_view::npos) {
    return end;
  }
  const auto group = std::min(text.find(' ', close), text.size());
  return group <= room ? group : end;
}

/// The body as it is when it is text, and as Base64 when it is not.
std::string body_text(const queue::Message& message) {
  if (!is_utf8(message.body)) {
    return base64(message.body) + "\n";
  }
  if (message.content_type == queue::kJson && !json_problem(message.body)) {
    JsonWriter json(JsonWriter::Layout::indented);
    json.raw(message.body);
    return json.take_line();
  }
  std::string text;
  for (const std::string& line : lines_of(message.body)) {
    text += visible(line) + "\n";
  }
  return text;
}

}  // namespace

std::string tinted(std::string_view text, Colour colour, bool colours) {
  if (!colours || colour == Colour::none || text.empty()) {
    return std::string(text);
  }
  return std::string(kCodes.at(static_cast<std::size_t>(colour))) + std::string(text) + std::string(kPlain);
}

std::size_t display_width(std::string_view text) {
  std::size_t columns = 0;
  walk(text, ~std::size_t{0}, columns);
  return columns;
}

std::string fit_line(const std::string& line, std::size_t columns) {
  std::size_t taken = 0;
  const std::size_t end = walk(line, columns, taken);
  const std::size_t code = line.rfind('\x1b', end);
  const bool coloured = end > 0 && code < end && line.compare(code, kPlain.size(), kPlain) != 0;
  return end < line.size() && coloured ? line.substr(0, end) + std::string(kPlain) : line.substr(0, end);
}

void append_wrapped(std::string& out, std::string_view text, std::size_t indent, std::size_t width) {
  const std::string indentation(indent, ' ');
  const std::vector<std::string> lines = lines_of(std::string(text));
  for (const std::string& line : lines) {
    out += &line == &lines.front() ? "" : line.empty() ? "\n" : "\n" + indentation;
    std::size_t column = indent;
    for (std::string_view rest = line; !rest.empty();) {
      const std::string_view word = rest.substr(0, word_length(rest, width - indent));
      const std::size_t takes = display_width(word);
      rest.remove_prefix(std::min(word.size() + 1, rest.size()));
      if (column > indent && column + 1 + takes > width) {
        out += "\n" + indentation;
        column = indent;
      }
      out += column > indent ? " " : "";
      out += word;
      column += (column > indent ? 1 : 0) + takes;
    }
  }
  out += '\n';
}

std::string wrapped(const std::string& text, const Screen& screen) {
  constexpr std::size_t kFurther = 4;
  std::string out;
  for (const std::string& line : lines_of(text)) {
    if (screen.columns == 0 || display_width(line) <= screen.columns) {
      out += line + "\n";
      continue;
    }
    const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
    out.append(begin, ' ');
    append_wrapped(out, std::string_view(line).substr(begin), std::min(begin + kFurther, screen.columns / 2),
                   screen.columns);
  }
  return out;
}

std::string facts_of(const operate::Row& row, bool colours, Colour titles) {
  TextTable table({{}, {}}, {.colours = colours});
  for (const auto& [column, cell] : row) {
    table.add({{lower_case(column.title), titles}, cell});
  }
  return table.take();
}

std::vector<std::string> lines_of(const std::string& text) { return split(text, '\n'); }

TextTable::TextTable(const std::vector<Column>& columns, Screen screen) : view_{.screen = screen} {
  set_columns(columns);
}

std::size_t TextTable::Shown::least() const {
  return column.least == 0 ? whole : std::min(whole, std::max(column.least, display_width(title.text)));
}

void TextTable::set_columns(const std::vector<Column>& columns) {
  columns_.reserve(columns.size());
  for (const Column& column : columns) {
    std::string title(column.title);
    title += column.title == view_.marked ? view_.mark : "";
    headline_ = headline_ || !title.empty();
    const std::size_t width = display_width(title);
    columns_.push_back({.column = column, .title = {std::move(title), Colour::dim}, .whole = width});
  }
}

void TextTable::add(std::vector<Cell> cells) {
  SLUICE_ASSERT(cells.size() == columns_.size());
  for (std::size_t index = 0; index < cells.size(); ++index) {
    std::string& text = cells[index].text;
    text = visible(text);
    Shown& shown = columns_[index];
    shown.whole = std::max(shown.whole, display_width(text));
    shown.empty = shown.empty && (text.empty() || text == "-");
  }
  rows_.push_back(std::move(cells));
}

void TextTable::add_record(const operate::Row& row) {
  std::vector<Column> columns;
  std::vector<Cell> cells;
  const auto take = [&](const operate::Row::value_type& field) {
    columns.push_back(field.first);
    cells.push_back(field.second);
  };
  for (const std::string_view title : view_.columns) {
    const auto* const field = find_where(row, [title](const auto& one) { return one.first.title == title; });
    SLUICE_ASSERT(field != nullptr);
    take(*field);
  }
  if (view_.columns.empty()) {
    std::for_each(row.begin(), row.end(), take);
  }
  if (columns_.empty()) {
    set_columns(columns);
  }
  add(std::move(cells));
}

template <typename Width>
std::size_t TextTable::line_width(Width width) const {
  std::size_t sum = 0;
  for (const Shown& shown : columns_) {
    sum += shown.left_out ? 0 : (sum == 0 ? 0 : kGap.size()) + width(shown);
  }
  return sum;
}

bool TextTable::leave_one_out(bool empty) {
  Shown* easiest = nullptr;
  for (Shown& shown : columns_) {
    const bool can = !shown.left_out && shown.column.spare > 0 && (shown.empty || !empty);
    easiest = can && (easiest == nullptr || shown.column.spare > easiest->column.spare) ? &shown : easiest;
  }
  if (easiest != nullptr) {
    easiest->left_out = true;
  }
  return easiest != nullptr;
}

void TextTable::fit() {
  const auto whole = [](const Shown& shown) { return shown.whole; };
  const auto least = [](const Shown& shown) { return shown.least(); };
  const std::size_t room = view_.screen.columns == 0 ? line_width(whole) : view_.screen.columns;
  const bool first_page = !std::exchange(begun_, true);
  if (first_page) {
    while (line_width(whole) > room && leave_one_out(true)) {
    }
    while (line_width(least) > room && leave_one_out(false)) {
    }
  }
  for (Shown& shown : columns_) {
    shown.width = shown.whole;
  }
  // Of a name and prose twice as wide, either may be cut: prose says more, and needs more room for it.
  const auto weight = [](const Shown& shown) { return shown.column.prose ? shown.width / 2 : shown.width; };
  for (std::size_t width = line_width(whole); width > room; --width) {
    Shown* widest = nullptr;
    for (Shown& shown : columns_) {
      const bool last_resort = !first_page && shown.column.prose;
      const std::size_t least_width = last_resort ? display_width(shown.title.text) : shown.least();
      const bool can = !shown.left_out && shown.width > least_width;
      widest = can && (widest == nullptr || weight(shown) > weight(*widest)) ? &shown : widest;
    }
    if (widest == nullptr) {
      break;
    }
    --widest->width;
  }
}

std::string TextTable::take() {
  std::string out;
  if (rows_.empty()) {
    return out;
  }
  fit();
  if (std::exchange(headline_, false)) {
    append_line(out, mapped(columns_, &Shown::title));
  }
  for (const auto& row : rows_) {
    append_line(out, row);
  }
  rows_.clear();
  return out;
}

void TextTable::append_line(std::string& out, const std::vector<Cell>& cells) const {
  std::size_t owed = 0;  // blanks, written only when something follows them
  bool first = true;
  for (std::size_t index = 0; index < cells.size(); ++index) {
    const Shown& shown = columns_[index];
    if (shown.left_out) {
      continue;
    }
    const std::string text = cut(cells[index].text, std::max<std::size_t>(shown.width, 1), shown.column.prose);
    const std::size_t blanks = shown.width - std::min(shown.width, display_width(text));
    owed += (std::exchange(first, false) ? 0 : kGap.size()) + (shown.column.right ? blanks : 0);
    if (!text.empty()) {
      out.append(owed, ' ');
      out += tinted(text, cells[index].colour, view_.screen.colours);
      owed = 0;
    }
    owed += shown.column.right ? 0 : blanks;
  }
  out += '\n';
}

void JsonList::begin() {
  if (std::exchange(begun_, true)) {
    return;
  }
  if (!key_.empty()) {
    json_.begin_object();
    json_.key(key_);
  }
  json_.begin_array();
}

void RecordStream::flush() {
  console_.out(table_.take());
  list_.flush();
  console_.flush();
}

std::string message_text(const queue::StoredMessage& stored, WallTime now, bool colours) {
  return message_text(operate::row_of(stored, now), stored.message, colours);
}

std::string message_text(operate::Row row, const queue::Message& message, bool colours) {
  std::erase_if(row, [](const auto& field) { return field.second.text.empty(); });
  return facts_of(row, colours, Colour::dim) + "\n" + body_text(message);
}

Exit show_message(const queue::StoredMessage& message, WallTime now, Console& console) {
  return print(console.shows_text() ? message_text(message, now, console.output_has_colour()) : json_of(message, now),
               console);
}

}  // namespace sluice::cli
