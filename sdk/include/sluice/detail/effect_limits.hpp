#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/effects.h"
#include "sluice/message.hpp"

namespace sluice::detail {

/// One member of an item in DynamoDB JSON. A value.
struct ItemMember {
  std::string name;
  /// What tells two keys apart: type and value of a string, a number or a binary, with numbers in one spelling. Empty
  /// for other types, which no key has.
  std::string key{};
};

/// 10, 1e1 and 10.0 in one spelling: digits and the power of ten. What is no number stays as it is.
inline std::string plain_number(std::string_view text) {
  const bool negative = text.starts_with('-');
  const std::size_t e = std::min(text.find_first_of("eE"), text.size());
  const std::size_t sign = negative || text.starts_with('+') ? 1 : 0;
  const std::string_view mantissa = text.substr(sign, e - sign);
  std::string_view exponent = text.substr(std::min(e + 1, text.size()));
  exponent.remove_prefix(exponent.starts_with('+') && !exponent.starts_with("+-") ? 1 : 0);
  int shift = 0;
  const auto read = std::from_chars(exponent.data(), exponent.data() + exponent.size(), shift);
  if (!exponent.empty() && (read.ec != std::errc() || read.ptr != exponent.data() + exponent.size())) {
    return std::string(text);
  }
  std::int64_t power = shift;
  std::string digits;
  const std::size_t point = std::min(mantissa.find('.'), mantissa.size());
  for (std::size_t i = 0; i < mantissa.size(); ++i) {
    const char c = mantissa[i];
    if (c >= '0' && c <= '9') {
      digits += c;
      power -= i > point ? 1 : 0;
    } else if (i != point) {
      return std::string(text);
    }
  }
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  while (digits.ends_with('0')) {
    digits.pop_back();
    ++power;
  }
  return digits.empty() ? "0" : (negative ? "-" : "") + digits + "e" + std::to_string(power);
}

/// Reads an item, or the values of expressions: {"id": {"S": "a"}, "total": {"N": "1"}}. Judges what DynamoDB JSON is,
/// not what DynamoDB takes.
class ItemReader {
 public:
  explicit ItemReader(std::string_view text) : text_(text) {}

  /// What is wrong with the text; empty: nothing, and `members` are its members in their order.
  std::string read(std::vector<ItemMember>& members) {
    members.clear();
    skip_space();
    if (!object([&](const std::string& name) {
          const bool twice = std::any_of(members.begin(), members.end(), [&](const auto& m) { return m.name == name; });
          if (twice) {
            return wrong("\"" + name + "\" stands there twice");
          }
          members.push_back({name});
          bytes_ += name.size();
          return value(members.back().key, 0);
        })) {
      return why();
    }
    skip_space();
    return at_ == text_.size() ? std::string() : "something follows its end";
  }
  /// What DynamoDB bills it as at least, once it has been read.
  std::size_t bytes() const { return bytes_; }

 private:
  static constexpr int kDeepest = 32;  // DynamoDB's limit

  bool wrong(std::string what) {
    if (why_.empty()) {
      why_ = std::move(what);
    }
    return false;
  }
  std::string why() const {
    return why_.empty() ? "it is not JSON from byte " + std::to_string(std::min(at_, text_.size()) + 1) + " on" : why_;
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char wanted) {
    if (peek() != wanted || at_ >= text_.size()) {
      return false;
    }
    ++at_;
    return true;
  }
  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) {
      ++at_;
    }
  }

  template <typename Each>
  bool object(Each each) {
    return sequence('{', '}', [&] {
      std::string name;
      if (!string(name)) {
        return false;
      }
      skip_space();
      if (!take(':')) {
        return false;
      }
      skip_space();
      return each(name);
    });
  }
  template <typename Each>
  bool sequence(char open, char close, Each each) {
    if (!take(open)) {
      return false;
    }
    skip_space();
    if (take(close)) {
      return true;
    }
    while (true) {
      skip_space();
      if (!each()) {
        return false;
      }
      skip_space();
      if (take(close)) {
        return true;
      }
      if (!take(',')) {
        return false;
      }
    }
  }

  /// {"S": "a"} and its like.
  bool value(std::string& key, int depth) {
    if (depth > kDeepest) {
      return wrong("it is nested more than 32 deep");
    }
    std::size_t types = 0;
    const bool read = object([&](const std::string& type) {
      ++types;
      return typed(type, key, depth);
    });
    return read && (types == 1 || wrong("a value is written as {\"S\": \"text\"}, with exactly one type"));
  }
  bool typed(const std::string& type, std::string& key, int depth) {
    std::string text;
    if (type == "S" || type == "N" || type == "B") {
      if (!string(text)) {
        return wrong("the value of {\"" + type + "\": ...} is written as a string");
      }
      key = type + ":" + (type == "N" ? plain_number(text) : text);
      count(type.front(), text);
      return true;
    }
    if (type == "SS" || type == "NS" || type == "BS") {
      return sequence('[', ']', [&] {
        const bool read = string(text);
        count(type.front(), text);
        return read;
      });
    }
    if (type == "L" || type == "M") {
      bytes_ += 3;
      const auto element = [&](const std::string& name) {
        bytes_ += 1 + name.size();
        return value(text, depth + 1);
      };
      return type == "M" ? object(element) : sequence('[', ']', [&] { return element({}); });
    }
    if (type == "BOOL" || type == "NULL") {
      ++bytes_;
      return word("true") || word("false") || wrong("the value of {\"" + type + "\": ...} is true or false");
    }
    return wrong("\"" + type + "\" is no type of DynamoDB's: S, N, B, BOOL, NULL, L, M, SS, NS or BS");
  }
  /// A number takes a byte at least, and four characters of base64 are three bytes.
  void count(char type, const std::string& text) {
    if (type == 'N') {
      bytes_ += 1;
    } else if (type == 'B') {
      bytes_ += (text.size() - static_cast<std::size_t>(std::count(text.begin(), text.end(), '='))) * 3 / 4;
    } else {
      bytes_ += text.size();
    }
  }
  bool word(std::string_view wanted) {
    if (text_.substr(at_, wanted.size()) != wanted) {
      return false;
    }
    at_ += wanted.size();
    return true;
  }

  bool string(std::string& into) {
    into.clear();
    if (!take('"')) {
      return false;
    }
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '"') {
        return true;
      }
      if (static_cast<unsigned char>(c) < 0x20) {
        return false;
      }
      if (c != '\\') {
        into += c;
      } else if (!escape(into)) {
        return false;
      }
    }
    return false;
  }
  bool escape(std::string& into) {
    const std::string_view plain = "\"\\/bfnrt";
    const std::size_t found = plain.find(peek());
    if (at_ < text_.size() && found != std::string_view::npos) {
      into += "\"\\/\b\f\n\r\t"[found];
      ++at_;
      return true;
    }
    unsigned int unit = 0;
    if (!take('u') || !hex(unit)) {
      return false;
    }
    if (unit >= 0xD800 && unit < 0xDC00) {
      unsigned int low = 0;
      if (!take('\\') || !take('u') || !hex(low) || low < 0xDC00 || low > 0xDFFF) {
        return false;
      }
      unit = 0x10000 + ((unit - 0xD800) << 10U) + (low - 0xDC00);
    } else if (unit >= 0xDC00 && unit < 0xE000) {
      return false;
    }
    append_utf8(unit, into);
    return true;
  }
  bool hex(unsigned int& unit) {
    constexpr std::size_t kDigits = 4;
    const std::string_view digits = text_.substr(at_, kDigits);
    const char* const end = std::from_chars(digits.data(), digits.data() + digits.size(), unit, 16).ptr;
    const auto read = static_cast<std::size_t>(end - digits.data());
    at_ += read;
    return read == kDigits;
  }
  static void append_utf8(unsigned int code, std::string& into) {
    static constexpr unsigned int kLeads[] = {0, 0xC0, 0xE0, 0xF0};
    const unsigned int tails = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    into += static_cast<char>(kLeads[tails] | code >> 6 * tails);
    for (unsigned int left = tails; left-- > 0;) {
      into += static_cast<char>(0x80U | (code >> 6 * left & 0x3FU));
    }
  }

  const std::string_view text_;
  std::size_t at_ = 0;
  std::size_t bytes_ = 0;
  std::string why_;
};

/// Which items the writes of one transaction name. A write of a whole item does not say which attributes are its key;
/// that is known once another write to the table has named a key.
class NamedItems {
 public:
  /// The number of the write that names the same item, as far as that can be known.
  std::optional<std::size_t> add(std::string_view table, const std::vector<ItemMember>& item, bool whole,
                                 std::size_t number) {
    Table& known = tables_.try_emplace(std::string(table)).first->second;
    if (!whole && known.key.empty()) {
      for (const ItemMember& member : item) {
        known.key.push_back(member.name);
      }
      std::sort(known.key.begin(), known.key.end());
    }
    const Key key = key_of(item, known.key);
    const auto same = std::find_if(known.written.begin(), known.written.end(),
                                   [&](const Written& other) { return key_of(other.item, known.key) == key; });
    const auto found = same == known.written.end() ? std::nullopt : std::optional(same->number);
    known.written.push_back({item, number});
    return found;
  }

 private:
  struct Written {
    std::vector<ItemMember> item;
    std::size_t number = 0;
  };
  struct Table {
    std::vector<std::string> key;  ///< names; empty: not known yet
    std::vector<Written> written;
  };

  /// Names and values.
  using Key = std::map<std::string_view, std::string_view>;

  /// Everything of an item while its table's key is not known: the same item twice is the same key twice.
  static Key key_of(const std::vector<ItemMember>& item, const std::vector<std::string>& names) {
    Key key;
    for (const ItemMember& member : item) {
      if (names.empty() || std::binary_search(names.begin(), names.end(), member.name)) {
        key.emplace(member.name, member.key);
      }
    }
    return key;
  }

  std::map<std::string, Table, std::less<>> tables_;
};

/// What one transaction may carry, judged while it is staged: by the host, and by the test kit. Each `admit` counts
/// what it admits; what it answers is why not, as one line, and empty when it does.
class EffectLimits {
 public:
  static constexpr std::size_t kMostActions = 100;
  static constexpr std::size_t kMostBytes = std::size_t{4} * 1024 * 1024;
  static constexpr std::size_t kMostResultBytes = std::size_t{32} * 1024;
  static constexpr std::size_t kMostDedupIdBytes = 1024;
  static constexpr std::size_t kMostItemBytes = std::size_t{400} * 1024;

  /// `keeps_key`: the job writes an idempotency record besides.
  EffectLimits(sluice_store store, bool keeps_key)
      : store_(store), own_(keeps_key ? 2 : 1), room_(kMostBytes - (keeps_key ? kRecordBytes : 0)) {}

  std::string admit(const sluice_effect_message& message) {
    if (message.struct_size < sizeof(sluice_effect_message)) {
      return too_short("message", message.struct_size);
    }
    if (message.queue.size == 0) {
      return "a message without a queue: name the queue that it is for";
    }
    const auto what = [&message] { return "a message to " + text(message.queue); };
    if (message.delay < 0 || message.dedup_window < 0) {
      return what() + " with a negative " + (message.delay < 0 ? "delay" : "deduplication window") + ": 0 is the least";
    }
    if (message.dedup_id.size > kMostDedupIdBytes) {
      return what() + " with a deduplication id of " + std::to_string(message.dedup_id.size) + " bytes: at most " +
             std::to_string(kMostDedupIdBytes) + " are kept; give it a hash of that";
    }
    if (message.priority < SLUICE_PRIORITY_LOW || message.priority > SLUICE_PRIORITY_CRITICAL) {
      return what() + " with the unknown priority " + std::to_string(message.priority) +
             ": it is from -1 (low) to 2 (critical)";
    }
    const std::size_t around = message.id.size + message.content_type.size + message.group.size +
                               sizes(message.attributes, message.attribute_count);
    // A table that keeps JSON as values may have it shorter.
    const bool json = view(message.content_type) == "application/json";
    const std::size_t least = around + (json ? 0 : message.body.size);
    if (store_ == SLUICE_STORE_DYNAMODB && least > kMostItemBytes) {
      return what() + " of " + std::to_string(least) + " bytes: DynamoDB holds " + std::to_string(kMostItemBytes) +
             kElsewhere;
    }
    const std::size_t bytes = message.queue.size + around + message.body.size + message.dedup_id.size;
    if (message.id.size > 0 && ids_.contains({std::string(view(message.queue)), std::string(view(message.id))})) {
      return "a second message to " + text(message.queue) + " with the id " + text(message.id) +
             ": send it once, or give it an id of its own";
    }
    // Its deduplication id is remembered in the same transaction.
    std::string why = take(what, bytes, message.dedup_id.size > 0 ? 2 : 1);
    if (why.empty() && message.id.size > 0) {
      ids_.emplace(view(message.queue), view(message.id));
    }
    return why;
  }

  std::string admit(const sluice_effect_item& item) {
    if (item.struct_size < sizeof(sluice_effect_item)) {
      return too_short("item", item.struct_size);
    }
    if (item.action < SLUICE_ITEM_PUT || item.action > SLUICE_ITEM_CHECK) {
      return "a write of an item with the unknown action " + std::to_string(item.action) + ": a defect of the plugin";
    }
    const std::string what = item_text(item);
    if (store_ != SLUICE_STORE_DYNAMODB) {
      return elsewhere(what,
                       ", but the job's queue lies in SQLite: write a row of it with SQL instead, or move the queue to "
                       "a store of kind \"dynamodb\"");
    }
    if (item.table.size == 0) {
      return what + " without a table: name it";
    }
    if (const std::string why = expressions(item); !why.empty()) {
      return what + " " + why;
    }
    std::vector<ItemMember> members;
    ItemReader reader(view(item.item));
    if (const std::string why = reader.read(members); !why.empty()) {
      return what + ": its " + (whole(item) ? "item" : "key") + " is no DynamoDB JSON: " + why;
    }
    if (const std::string why = key_wrong(members, whole(item)); !why.empty()) {
      return what + ": " + why;
    }
    if (reader.bytes() > kMostItemBytes) {
      return what + " takes " + std::to_string(reader.bytes()) + " bytes, and DynamoDB holds " +
             std::to_string(kMostItemBytes) + kElsewhere;
    }
    const std::size_t bytes = item.table.size + item.item.size + item.update.size + item.condition.size +
                              item.values.size + sizes(item.names, item.name_count);
    if (std::string why = take([&what] { return std::string(what); }, bytes); !why.empty()) {
      return why;
    }
    if (const auto same = items_.add(view(item.table), members, whole(item), effects_)) {
      return what + ": effect " + std::to_string(*same) +
             " writes the same item, and a transaction may name each item once: put both into one write";
    }
    return {};
  }

  std::string admit(const sluice_effect_sql& sql) {
    if (sql.struct_size < sizeof(sluice_effect_sql)) {
      return too_short("SQL statement", sql.struct_size);
    }
    const auto what = [&sql] { return "the SQL statement \"" + text(sql.statement) + "\""; };
    if (store_ != SLUICE_STORE_SQLITE) {
      return elsewhere(what(),
                       ", but the job's queue lies in DynamoDB: put, update, delete or check an item instead, or move "
                       "the queue to a store of kind \"sqlite\"");
    }
    if (view(sql.statement).find_first_not_of(" \t\r\n;") == std::string_view::npos) {
      return "an empty SQL statement";
    }
    if (sql.rows < -1) {
      return what() + " is to change " + std::to_string(sql.rows) + " rows: 0 is the least, and -1 is any number";
    }
    std::size_t bytes = sql.statement.size;
    for (std::size_t i = 0; i < sql.parameter_count; ++i) {
      const sluice_sql_value& value = sql.parameters[i];
      if (value.type < SLUICE_SQL_NULL || value.type > SLUICE_SQL_BLOB) {
        return what() + ": parameter ?" + std::to_string(i + 1) + " has the unknown type " +
               std::to_string(value.type) + ": a defect of the plugin";
      }
      bytes += sizeof(std::int64_t) + value.bytes.size;
    }
    return take(what, bytes);
  }

  /// A result, which the record of the message's idempotency key has room for.
  static std::string admit(sluice_string result) {
    return result.size <= kMostResultBytes ? std::string()
                                           : "a result of " + std::to_string(result.size) + " bytes: at most " +
                                                 std::to_string(kMostResultBytes) + " are kept" + kElsewhere;
  }

  /// The user's own, so far.
  std::size_t actions() const { return actions_; }
  std::size_t bytes() const { return bytes_; }

 private:
  static constexpr const char* kElsewhere = "; keep what is larger elsewhere, and its name here";
  static constexpr std::size_t kShownText = 80;
  static constexpr std::size_t kRecordBytes = kMostResultBytes + std::size_t{16} * 1024;  // result and key

  static bool whole(const sluice_effect_item& item) { return item.action == SLUICE_ITEM_PUT; }
  static std::string text(sluice_string from) {
    std::string shown(view(from).substr(0, kShownText));
    std::replace(shown.begin(), shown.end(), '\n', ' ');
    return shown + (from.size > kShownText ? "..." : "");
  }
  static std::string too_short(const char* what, std::uint32_t size) {
    return std::string(what) + " of " + std::to_string(size) +
           " bytes, which is too short to be one: a defect of the plugin";
  }
  static std::string item_text(const sluice_effect_item& item) {
    static constexpr const char* kActions[] = {"a put into table ", "an update in table ", "a delete in table ",
                                               "a check in table "};
    return kActions[item.action - SLUICE_ITEM_PUT] + text(item.table);
  }
  static std::size_t sizes(const sluice_attribute* pairs, std::size_t count) {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < count; ++i) {
      bytes += pairs[i].name.size + pairs[i].value.size;
    }
    return bytes;
  }

  /// `mend`: of an effect that the other store takes.
  std::string elsewhere(const std::string& what, const char* mend) const {
    const bool outbox = store_ != SLUICE_STORE_SQLITE && store_ != SLUICE_STORE_DYNAMODB;
    return what + (outbox
                       ? ", but the job works on an outbox, which has no store of its own for effects: send a message "
                         "to a queue, and write it in that queue's job"
                       : mend);
  }

  static std::string expressions(const sluice_effect_item& item) {
    const bool update = item.action == SLUICE_ITEM_UPDATE;
    if (update != (item.update.size > 0)) {
      return update ? "without an update expression: say what is to change"
                    : "with an update expression: only an update has one";
    }
    if (item.action == SLUICE_ITEM_CHECK && item.condition.size == 0) {
      return "without a condition: say what has to hold";
    }
    for (std::size_t i = 0; i < item.name_count; ++i) {
      if (!view(item.names[i].name).starts_with('#')) {
        return "with the name \"" + text(item.names[i].name) + "\": such names begin with #";
      }
    }
    std::vector<ItemMember> values;
    if (item.values.size > 0) {
      if (const std::string why = ItemReader(view(item.values)).read(values); !why.empty()) {
        return "whose values are no DynamoDB JSON: " + why;
      }
    }
    for (const ItemMember& value : values) {
      if (!value.name.starts_with(':')) {
        return "with the value \"" + value.name + "\": their names begin with a colon";
      }
    }
    return {};
  }

  static std::string key_wrong(const std::vector<ItemMember>& members, bool whole) {
    if (members.empty()) {
      return whole ? "an empty item" : "an empty key: name the item's key attributes";
    }
    if (whole) {
      return {};
    }
    if (members.size() > 2) {
      return "a key of " + std::to_string(members.size()) +
             " attributes: it has a partition key, and a sort key where the table has one";
    }
    const auto odd =
        std::find_if(members.begin(), members.end(), [](const auto& member) { return member.key.empty(); });
    return odd == members.end() ? ""
                                : "the key attribute \"" + odd->name + "\" is neither a string nor a number nor binary";
  }

  /// `what` gives the effect's name, which is made only for a refusal: most are admitted.
  template <typename What>
  std::string take(What what, std::size_t bytes, std::size_t actions = 1) {
    if (actions_ + own_ + actions > kMostActions) {
      return what() + " is one too many: a transaction has at most " + std::to_string(kMostActions) +
             " actions, of which " +
             (own_ > 1 ? "two are the message's own end and its idempotency record" : "one is the message's own end") +
             ": send the rest to a queue and do it there";
    }
    if (bytes > room_ - bytes_) {
      return what() + " makes the transaction " + std::to_string(bytes_ + bytes) + " bytes: it has at most " +
             std::to_string(room_) + kElsewhere;
    }
    actions_ += actions;
    ++effects_;
    bytes_ += bytes;
    return {};
  }

  const sluice_store store_;
  const std::size_t own_;
  const std::size_t room_;  ///< in bytes
  std::size_t actions_ = 0;
  std::size_t effects_ = 0;
  std::size_t bytes_ = 0;
  NamedItems items_;
  std::set<std::pair<std::string, std::string>> ids_;  // queue and id of messages
};

}  // namespace sluice::detail
