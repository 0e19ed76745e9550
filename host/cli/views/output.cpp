#include "host/cli/views/output.hpp"

#include <algorithm>
#include <array>
#include <clocale>
#include <cwchar>

#include "base/assert.hpp"
#include "base/text/base64.hpp"
#include "base/text/json_check.hpp"
#include "base/text/lower_case.hpp"
#include "base/text/utf8.hpp"
#include "base/text/visible.hpp"

namespace sluice::cli {

namespace {

constexpr std::string_view kGap = "  ";
constexpr std::string_view kEllipsis = "\xe2\x80\xa6";

/// The C library measures characters by the thread's locale; this one sets it for a scope.
class Utf8Locale {
 public:
  Utf8Locale() : previous_(kLocale == nullptr ? nullptr : ::uselocale(kLocale)) {}
  ~Utf8Locale() {
    if (previous_ != nullptr) {
      ::uselocale(previous_);
    }
  }
  Utf8Locale(const Utf8Locale&) = delete;
  Utf8Locale& operator=(const Utf8Locale&) = delete;

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

/// In one line, and no wider than `widest`.
std::string fitted(std::string_view text, std::size_t widest) {
  std::string visible;
  append_visible(visible, text);
  if (widest == 0 || display_width(visible) <= widest) {
    return visible;
  }
  std::size_t columns = 0;
  visible.resize(walk(visible, widest - 1, columns));
  visible += kEllipsis;
  return visible;
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

std::string coloured(std::string_view text, Colour colour) {
  if (colour == Colour::none || text.empty()) {
    return std::string(text);
  }
  return std::string(kCodes.at(static_cast<std::size_t>(colour))) + std::string(text) + "\x1b[0m";
}

std::size_t display_width(std::string_view text) {
  std::size_t columns = 0;
  walk(text, ~std::size_t{0}, columns);
  return columns;
}

std::string facts_of(const operate::Row& row, bool colours, Colour titles) {
  TextTable table({{}, {}}, colours);
  for (const auto& [column, cell] : row) {
    table.add({{lower_case(column.title), titles}, cell});
  }
  return table.take();
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

TextTable::TextTable(std::vector<Column> columns, bool colours) : view_{.colours = colours} {
  set_columns(std::move(columns));
}

void TextTable::set_columns(std::vector<Column> columns) {
  columns_ = std::move(columns);
  for (const Column& column : columns_) {
    std::string title(column.title);
    title += column.title == view_.marked ? view_.mark : "";
    widths_.push_back(display_width(title));
    headline_ = headline_ || !title.empty();
    titles_.emplace_back(std::move(title), Colour::dim);
  }
}

void TextTable::add(std::vector<Cell> cells) {
  SLUICE_ASSERT(cells.size() == columns_.size());
  for (std::size_t index = 0; index < cells.size(); ++index) {
    cells[index].text = fitted(cells[index].text, columns_[index].widest);
    widths_[index] = std::max(widths_[index], display_width(cells[index].text));
  }
  rows_.push_back(std::move(cells));
}

void TextTable::add_record(const operate::Row& row) {
  std::vector<Column> columns;
  std::vector<Cell> cells;
  const auto take = [&](const operate::Row::value_type& field) {
    columns.push_back(field.first);
    columns.back().widest =
        view_.widest_name == 0 ? field.first.widest : std::min(field.first.widest, view_.widest_name);
    cells.push_back(field.second);
  };
  for (const std::string_view title : view_.columns) {
    const auto field =
        std::find_if(row.begin(), row.end(), [title](const auto& one) { return one.first.title == title; });
    SLUICE_ASSERT(field != row.end());
    take(*field);
  }
  if (view_.columns.empty()) {
    std::for_each(row.begin(), row.end(), take);
  }
  if (columns_.empty()) {
    set_columns(std::move(columns));
  }
  add(std::move(cells));
}

std::string TextTable::take() {
  std::string out;
  if (headline_ && !rows_.empty()) {
    append_line(out, titles_);
    headline_ = false;
  }
  for (const auto& row : rows_) {
    append_line(out, row);
  }
  rows_.clear();
  return out;
}

void TextTable::append_line(std::string& out, const std::vector<Cell>& cells) const {
  std::size_t owed = 0;  // blanks, written only when something follows them
  for (std::size_t index = 0; index < cells.size(); ++index) {
    const Cell& cell = cells[index];
    const std::size_t blanks = widths_[index] - std::min(widths_[index], display_width(cell.text));
    owed += (index == 0 ? 0 : kGap.size()) + (columns_[index].right ? blanks : 0);
    if (!cell.text.empty()) {
      out.append(owed, ' ');
      out += tinted(cell.text, cell.colour, view_.colours);
      owed = 0;
    }
    owed += columns_[index].right ? 0 : blanks;
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
  operate::Row row = operate::row_of(stored, now);
  std::erase_if(row, [](const auto& field) { return field.second.text.empty(); });
  return facts_of(row, colours, Colour::dim) + "\n" + body_text(stored.message);
}

void show_message(const queue::StoredMessage& message, WallTime now, Console& console) {
  console.out(console.shows_text() ? message_text(message, now, console.output_has_colour()) : json_of(message, now));
}

}  // namespace sluice::cli
