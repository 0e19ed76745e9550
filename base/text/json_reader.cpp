#include "base/text/json_reader.hpp"

#include <algorithm>
#include <cstdint>

namespace sluice {

namespace {

constexpr JsonCursor::Problem kTooDeep = "it is nested too deep";

char closing_of(bool object) { return object ? '}' : ']'; }

}  // namespace

bool JsonReader::fail(std::string_view reason) {
  if (reason_.empty()) {
    reason_ = reason;
  }
  return false;
}

std::string JsonReader::place() const {
  const std::string_view before = text_.substr(0, offset());
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return "line " + std::to_string(line) + ", column " + std::to_string(before.size() - line_start + 1);
}

JsonReader::Kind JsonReader::peek() {
  if (failed()) {
    return Kind::nothing;
  }
  const char first = cursor_.peek();
  switch (first) {
    case '{':
      return Kind::object;
    case '[':
      return Kind::array;
    case '"':
      return Kind::string;
    case 't':
    case 'f':
      return Kind::boolean;
    case 'n':
      return Kind::null;
    default:
      return first == '-' || JsonCursor::is_digit(first) ? Kind::number : Kind::nothing;
  }
}

bool JsonReader::begin(char bracket) {
  if (failed()) {
    return false;
  }
  if (cursor_.peek() != bracket) {
    return fail(bracket == '{' ? "an object is expected" : "an array is expected");
  }
  if (depth_ == max_depth_) {
    return fail(kTooDeep);
  }
  cursor_.pass();
  ++depth_;
  fresh_ = true;
  return true;
}

bool JsonReader::begin_object() { return begin('{'); }
bool JsonReader::begin_array() { return begin('['); }

bool JsonReader::next(char closing) {
  bool more = false;
  if (failed() || !is_fine(cursor_.next(closing, fresh_, more))) {
    return false;
  }
  fresh_ = false;
  depth_ -= more ? 0 : 1;
  return more;
}

bool JsonReader::next_element() { return next(']'); }

bool JsonReader::next_member(std::string_view& name) {
  if (!next('}')) {
    return false;
  }
  const bool quoted = cursor_.peek() == '"';
  const char* const start = cursor_.at();
  if (!quoted || !cursor_.plain_string(name)) {
    name_.clear();
    if (!is_fine(cursor_.name(bad_text_, &name_))) {
      return false;
    }
    name = name_;
  }
  written_name_ = {start, static_cast<std::size_t>(cursor_.at() - start)};
  return is_fine(cursor_.colon());
}

bool JsonReader::read_string(std::string& out) {
  out.clear();
  if (peek() != Kind::string) {
    return fail("a string is expected");
  }
  return is_fine(cursor_.string(bad_text_, &out));
}

bool JsonReader::read_number(std::string_view& text) {
  if (peek() != Kind::number) {
    return fail("a number is expected");
  }
  const char* const start = cursor_.at();
  if (!is_fine(cursor_.number())) {
    return false;
  }
  text = {start, static_cast<std::size_t>(cursor_.at() - start)};
  return true;
}

bool JsonReader::read_bool(bool& out) {
  if (peek() != Kind::boolean) {
    return fail("true or false is expected");
  }
  out = *cursor_.at() == 't';
  return is_fine(cursor_.word(out ? "true" : "false"));
}

bool JsonReader::read_null() {
  if (peek() != Kind::null) {
    return fail("null is expected");
  }
  return is_fine(cursor_.word("null"));
}

// Its state is in variables, so that it stays in registers: most of what is sent and edited goes through here.
JsonReader::Passed JsonReader::pass_value(JsonCursor cursor, std::size_t depth) const {
  constexpr std::size_t kMostOpen = 64;
  std::uint64_t objects = 0;  // which of those that are open are objects, the innermost one lowest
  std::size_t open = 0;
  const auto closing = [&objects] { return closing_of((objects & 1U) != 0); };
  while (true) {
    JsonCursor::Problem problem = nullptr;
    bool more = false;
    const char first = cursor.peek();
    if ((first == '{' || first == '[') && open < kMostOpen) {
      if (depth + open == max_depth_) {
        return {cursor, kTooDeep};
      }
      cursor.pass();
      ++open;
      objects = objects << 1U | (first == '{' ? 1U : 0U);
      problem = cursor.next(closing(), true, more);
    } else {
      if (first == '{' || first == '[') {
        const Passed inner = pass_value(cursor, depth + open);
        cursor = inner.cursor;
        problem = inner.problem;
      } else {
        problem = cursor.scalar(first, bad_text_);
      }
      if (problem != nullptr || open == 0) {
        return {cursor, problem};
      }
      problem = cursor.next(closing(), false, more);
    }
    // Up to where another value begins, or the outermost one has ended.
    while (problem == nullptr && !more) {
      objects >>= 1U;
      if (--open == 0) {
        return {cursor, nullptr};
      }
      problem = cursor.next(closing(), false, more);
    }
    if (problem == nullptr && (objects & 1U) != 0) {
      problem = cursor.name(bad_text_, nullptr);
      problem = problem == nullptr ? cursor.colon() : problem;
    }
    if (problem != nullptr) {
      return {cursor, problem};
    }
  }
}

bool JsonReader::skip() {
  if (failed()) {
    return false;
  }
  const Passed passed = pass_value(cursor_, depth_);
  cursor_ = passed.cursor;
  return is_fine(passed.problem);
}

bool JsonReader::read_raw(std::string_view& text) {
  peek();  // passes the white space before the value
  const char* const start = cursor_.at();
  if (!skip()) {
    return false;
  }
  text = {start, static_cast<std::size_t>(cursor_.at() - start)};
  return true;
}

bool JsonReader::finish() {
  if (failed()) {
    return false;
  }
  cursor_.peek();
  return cursor_.at_end() || fail("there is more text after the value");
}

}  // namespace sluice
