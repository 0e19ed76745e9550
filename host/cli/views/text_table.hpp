#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::cli {

enum class Colour { none, dim, red, green, yellow };

/// `text` in a colour, for a terminal.
std::string coloured(std::string_view text, Colour colour);

/// How many columns of a terminal the text takes; a wide character takes two, a combining one none.
std::size_t display_width(std::string_view text);

/// Lays out rows in aligned columns, for people. One thread.
///
/// `take` gives what was added since the last time, so that a long list can be shown page by page; widths only grow.
class TextTable {
 public:
  struct Column {
    std::string_view title{};
    bool right = false;      ///< for numbers
    std::size_t widest = 0;  ///< cut longer cells to this, with an ellipsis; 0: never
  };
  struct Cell {
    Cell(std::string content, Colour tint = Colour::none) : text(std::move(content)), colour(tint) {}
    Cell(const char* content) : text(content) {}
    std::string text;
    Colour colour = Colour::none;
  };

  /// Without titles there is no headline. `colours`: whether it goes to a terminal that shows them.
  TextTable(std::vector<Column> columns, bool colours);

  /// One cell for each column. Line breaks and control characters in them are shown escaped.
  void add(std::vector<Cell> cells);
  /// The rows since the last time as lines, the headline before the first ones; empty when there are none.
  std::string take();

 private:
  void append_line(std::string& out, const std::vector<Cell>& cells) const;

  std::vector<Column> columns_;
  std::vector<std::size_t> widths_;
  std::vector<std::vector<Cell>> rows_;
  bool colours_;
  bool headline_ = true;
};

}  // namespace sluice::cli
