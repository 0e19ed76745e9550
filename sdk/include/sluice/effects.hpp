#pragma once

/// What a handler wants committed together with the end of its message: <sluice/context.hpp> makes these.
///
///     context.send("receipts", "10 paid").group("a").delay(1min);
///     context.update("accounts", {{"id", "a"}}).set("balance = balance - :n").when("balance >= :n").value(":n", 10);
///     context.sql("UPDATE accounts SET balance = balance - ?1 WHERE id = ?2", 10, "a").rows(1).label("debit");
///
/// Each is staged at the end of its statement, which throws EffectError when it cannot be. What is staged is committed
/// when `handle` returns `done()`, in one transaction with the end of the message, and dropped with every other
/// outcome.

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/effects.h"
#include "sluice/item.hpp"
#include "sluice/message.hpp"

namespace sluice {

/// Where the job's queue lies, and with it everything that can be staged. `none`: it is an outbox, and messages can,
/// which are sent at least once; or the host is older than effects.
enum class Store : std::uint8_t {
  none = SLUICE_STORE_NONE,
  sqlite = SLUICE_STORE_SQLITE,
  dynamodb = SLUICE_STORE_DYNAMODB,
};

enum class Priority : std::int8_t { low = -1, normal = 0, high = 1, critical = 2 };

namespace detail {

inline Store store_named(sluice_store store) {
  return store == SLUICE_STORE_SQLITE ? Store::sqlite : store == SLUICE_STORE_DYNAMODB ? Store::dynamodb : Store::none;
}

/// Names and values that live as long as an effect is put together.
class Pairs {
 public:
  void add(std::string_view name, std::string_view value) {
    const std::string& kept_name = texts_.emplace_back(name);
    const std::string& kept_value = texts_.emplace_back(value);
    entries_.push_back({borrow(kept_name), borrow(kept_value)});
  }
  const sluice_attribute* data() const { return entries_.data(); }
  std::size_t size() const { return entries_.size(); }

 private:
  std::deque<std::string> texts_;  // its elements do not move
  std::vector<sluice_attribute> entries_;
};

/// An effect that is staged where its statement ends, unless an exception ends it.
class Pending {
 public:
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;

 protected:
  explicit Pending(const sluice_effects& effects) : effects_(effects) {}
  ~Pending() = default;

  bool wanted() const { return std::uncaught_exceptions() <= exceptions_; }
  const sluice_effects& effects() const { return effects_; }
  static void judge(const char* refusal) {
    if (refusal != nullptr) {
      throw EffectError(refusal);
    }
  }

 private:
  const sluice_effects& effects_;
  const int exceptions_ = std::uncaught_exceptions();
};

}  // namespace detail

/// A message to another queue.
class MessageEffect : public detail::Pending {
 public:
  MessageEffect(const sluice_effects& effects, std::string_view queue, std::string_view body)
      : Pending(effects), queue_(queue), body_(body) {}
  ~MessageEffect() noexcept(false) {
    if (wanted()) {
      stage();
    }
  }

  /// Unless it is named the host makes one.
  MessageEffect& id(std::string_view id) { return set(id_, id); }
  /// "text/plain" unless it is named.
  MessageEffect& content_type(std::string_view type) { return set(content_type_, type); }
  MessageEffect& group(std::string_view group) { return set(group_, group); }
  MessageEffect& attribute(std::string_view name, std::string_view value) {
    attributes_.add(name, value);
    return *this;
  }
  MessageEffect& delay(std::chrono::nanoseconds delay) {
    delay_ = delay;
    return *this;
  }
  MessageEffect& priority(Priority priority) {
    priority_ = priority;
    return *this;
  }
  /// A second message with this id within the window is not delivered. Zero: five minutes.
  MessageEffect& dedup_id(std::string_view id, std::chrono::nanoseconds window = {}) {
    dedup_window_ = window;
    return set(dedup_id_, id);
  }

 private:
  MessageEffect& set(std::string& member, std::string_view value) {
    member = value;
    return *this;
  }
  void stage() const {
    const sluice_effect_message message{sizeof(sluice_effect_message),
                                        static_cast<sluice_priority>(priority_),
                                        detail::borrow(queue_),
                                        detail::borrow(id_),
                                        detail::borrow(body_),
                                        detail::borrow(content_type_),
                                        detail::borrow(group_),
                                        detail::borrow(dedup_id_),
                                        dedup_window_.count(),
                                        delay_.count(),
                                        attributes_.data(),
                                        attributes_.size()};
    judge(effects().send(&effects(), &message));
  }

  const std::string queue_;
  const std::string body_;
  std::string id_;
  std::string content_type_;
  std::string group_;
  std::string dedup_id_;
  std::chrono::nanoseconds dedup_window_{};
  std::chrono::nanoseconds delay_{};
  Priority priority_ = Priority::normal;
  detail::Pairs attributes_;
};

/// A write of an item, or a check of one.
template <sluice_item_action action>
class ItemEffect : public detail::Pending {
 public:
  ItemEffect(const sluice_effects& effects, std::string_view table, const Item& item)
      : Pending(effects), table_(table), item_(item.json()) {}
  ~ItemEffect() noexcept(false) {
    if (wanted()) {
      stage();
    }
  }

  // Of an update: a change, in the clauses of DynamoDB's update expressions. Each may be called several times.

  /// "balance = balance - :n"
  ItemEffect& set(std::string_view what) requires(action == SLUICE_ITEM_UPDATE) { return change(0, what); }
  /// "note"
  ItemEffect& remove(std::string_view what) requires(action == SLUICE_ITEM_UPDATE) { return change(1, what); }
  /// "visits :one"
  ItemEffect& add(std::string_view what) requires(action == SLUICE_ITEM_UPDATE) { return change(2, what); }
  /// "tags :old": out of a set (DELETE)
  ItemEffect& take(std::string_view what) requires(action == SLUICE_ITEM_UPDATE) { return change(3, what); }

  /// A condition expression; several have to hold together.
  ItemEffect& when(std::string_view condition) {
    condition_ =
        condition_.empty() ? std::string(condition) : "(" + condition_ + ") AND (" + std::string(condition) + ")";
    return *this;
  }
  /// What "#n" in an expression stands for.
  ItemEffect& name(std::string_view name, std::string_view attribute) {
    names_.add(name, attribute);
    return *this;
  }
  /// What ":v" in an expression stands for.
  ItemEffect& value(std::string_view name, const Value& value) {
    values_.set(name, value);
    return *this;
  }
  /// By which a refusal names it.
  ItemEffect& label(std::string_view label) {
    label_ = label;
    return *this;
  }
  /// When it is refused the message is rejected, not retried.
  ItemEffect& otherwise_reject() {
    on_refusal_ = SLUICE_REFUSED_REJECT;
    return *this;
  }

 private:
  static constexpr const char* kClauses[] = {"SET ", "REMOVE ", "ADD ", "DELETE "};

  ItemEffect& change(std::size_t clause, std::string_view what) {
    std::string& text = clauses_[clause];
    text += text.empty() ? "" : ", ";
    text += what;
    return *this;
  }
  void stage() const {
    std::string update;
    for (std::size_t i = 0; i < std::size(kClauses); ++i) {
      if (!clauses_[i].empty()) {
        update += (update.empty() ? "" : " ") + (kClauses[i] + clauses_[i]);
      }
    }
    const std::string values = values_.empty() ? std::string() : values_.json();
    const sluice_effect_item item{sizeof(sluice_effect_item),
                                  action,
                                  on_refusal_,
                                  0,
                                  detail::borrow(table_),
                                  detail::borrow(item_),
                                  detail::borrow(update),
                                  detail::borrow(condition_),
                                  names_.data(),
                                  names_.size(),
                                  detail::borrow(values),
                                  detail::borrow(label_)};
    judge(effects().write_item(&effects(), &item));
  }

  const std::string table_;
  const std::string item_;
  std::string clauses_[std::size(kClauses)];
  std::string condition_;
  detail::Pairs names_;
  Item values_;
  std::string label_;
  sluice_on_refusal on_refusal_ = SLUICE_REFUSED_RETRY;
};

using PutEffect = ItemEffect<SLUICE_ITEM_PUT>;  ///< a whole item, in place of the one with its key
using UpdateEffect = ItemEffect<SLUICE_ITEM_UPDATE>;
using DeleteEffect = ItemEffect<SLUICE_ITEM_DELETE>;
using CheckEffect = ItemEffect<SLUICE_ITEM_CHECK>;  ///< of an item that is not written, but has to be as `when` says

/// Bytes as a parameter of SQL; text is one as it is. Borrows.
struct Blob {
  std::string_view bytes;
};
inline Blob blob(std::string_view bytes) { return {bytes}; }

/// One SQL statement, with the values of ?1, ?2, ...
class SqlEffect : public detail::Pending {
 public:
  template <typename... Parameter>
  SqlEffect(const sluice_effects& effects, std::string_view statement, const Parameter&... parameters)
      : Pending(effects), statement_(statement) {
    (add(parameters), ...);
  }
  ~SqlEffect() noexcept(false) {
    if (wanted()) {
      const sluice_effect_sql sql{
          sizeof(sluice_effect_sql), on_refusal_, detail::borrow(statement_), values_.data(), values_.size(), rows_,
          detail::borrow(label_)};
      judge(effects().run_sql(&effects(), &sql));
    }
  }

  /// How many rows it has to change; any number unless that is said.
  SqlEffect& rows(std::int64_t count) {
    rows_ = count;
    return *this;
  }
  /// By which a refusal names it.
  SqlEffect& label(std::string_view label) {
    label_ = label;
    return *this;
  }
  /// When it is refused the message is rejected, not retried.
  SqlEffect& otherwise_reject() {
    on_refusal_ = SLUICE_REFUSED_REJECT;
    return *this;
  }

 private:
  void add(std::nullptr_t) { values_.push_back({SLUICE_SQL_NULL, 0, 0, 0, {}}); }
  void add(std::integral auto number) {
    if (!std::in_range<std::int64_t>(static_cast<decltype(number + 0)>(number))) {
      throw EffectError("the parameter ?" + std::to_string(values_.size() + 1) + " of \"" + statement_ +
                        "\" is larger than SQLite's integers: make it a text");
    }
    values_.push_back({SLUICE_SQL_INTEGER, 0, static_cast<std::int64_t>(number), 0, {}});
  }
  void add(std::floating_point auto number) {
    values_.push_back({SLUICE_SQL_REAL, 0, 0, static_cast<double>(number), {}});
  }
  void add(std::string_view text) { keep(SLUICE_SQL_TEXT, text); }
  void add(const Blob& blob) { keep(SLUICE_SQL_BLOB, blob.bytes); }
  template <typename T>
  void add(const std::optional<T>& value) {
    value ? add(*value) : add(nullptr);
  }
  void keep(sluice_sql_type type, std::string_view bytes) {
    values_.push_back({type, 0, 0, 0, detail::borrow(texts_.emplace_back(bytes))});
  }

  const std::string statement_;
  std::deque<std::string> texts_;  // its elements do not move
  std::vector<sluice_sql_value> values_;
  std::int64_t rows_ = -1;
  std::string label_;
  sluice_on_refusal on_refusal_ = SLUICE_REFUSED_RETRY;
};

}  // namespace sluice
