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

/// An effect that is put together in `Raw`, its struct of the ABI, and staged where its statement ends, unless an
/// exception ends it.
template <typename Raw>
class Pending {
 public:
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;

 protected:
  explicit Pending(const sluice_effects& effects) : effects_(effects) { raw_.struct_size = sizeof(Raw); }
  ~Pending() = default;

  bool wanted() const { return std::uncaught_exceptions() <= exceptions_; }
  void stage(const char* (*call)(const sluice_effects*, const Raw*)) const {
    if (const char* refusal = call(&effects_, &raw_)) {
      throw EffectError(refusal);
    }
  }
  const sluice_effects& effects() const { return effects_; }
  /// A copy that lives as long as this.
  sluice_string keep(std::string_view text) { return borrow(texts_.emplace_back(text)); }

  Raw raw_{};

 private:
  const sluice_effects& effects_;
  const int exceptions_ = std::uncaught_exceptions();
  std::deque<std::string> texts_;  // its elements do not move
};

}  // namespace detail

/// A message to another queue.
class MessageEffect : public detail::Pending<sluice_effect_message> {
 public:
  MessageEffect(const sluice_effects& effects, std::string_view queue, std::string_view body) : Pending(effects) {
    set(raw_.queue, queue);
    set(raw_.body, body);
  }
  ~MessageEffect() noexcept(false) {
    if (wanted()) {
      raw_.attributes = attributes_.data();
      raw_.attribute_count = attributes_.size();
      stage(effects().send);
    }
  }

  /// Unless it is named the host makes one.
  MessageEffect& id(std::string_view id) { return set(raw_.id, id); }
  /// "text/plain" unless it is named.
  MessageEffect& content_type(std::string_view type) { return set(raw_.content_type, type); }
  MessageEffect& group(std::string_view group) { return set(raw_.group, group); }
  MessageEffect& attribute(std::string_view name, std::string_view value) {
    attributes_.push_back({keep(name), keep(value)});
    return *this;
  }
  MessageEffect& delay(std::chrono::nanoseconds delay) {
    raw_.delay = delay.count();
    return *this;
  }
  MessageEffect& priority(Priority priority) {
    raw_.priority = static_cast<sluice_priority>(priority);
    return *this;
  }
  /// A second message with this id within the window is not delivered. Zero: five minutes.
  MessageEffect& dedup_id(std::string_view id, std::chrono::nanoseconds window = {}) {
    raw_.dedup_window = window.count();
    return set(raw_.dedup_id, id);
  }

 private:
  MessageEffect& set(sluice_string& member, std::string_view value) {
    member = keep(value);
    return *this;
  }

  std::vector<sluice_attribute> attributes_;
};

/// A write of an item, or a check of one.
template <sluice_item_action action>
class ItemEffect : public detail::Pending<sluice_effect_item> {
 public:
  ItemEffect(const sluice_effects& effects, std::string_view table, const Item& item) : Pending(effects) {
    raw_.action = action;
    raw_.table = keep(table);
    raw_.item = keep(item.json());
  }
  ~ItemEffect() noexcept(false) {
    if (wanted()) {
      std::string update;
      for (std::size_t i = 0; i < std::size(kClauses); ++i) {
        if (!clauses_[i].empty()) {
          update += (update.empty() ? "" : " ") + (kClauses[i] + clauses_[i]);
        }
      }
      raw_.update = detail::borrow(update);
      raw_.condition = detail::borrow(condition_);
      raw_.names = names_.data();
      raw_.name_count = names_.size();
      raw_.values = keep(values_.empty() ? std::string() : values_.json());
      stage(effects().write_item);
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
    names_.push_back({keep(name), keep(attribute)});
    return *this;
  }
  /// What ":v" in an expression stands for.
  ItemEffect& value(std::string_view name, const Value& value) {
    values_.set(name, value);
    return *this;
  }
  /// By which a refusal names it.
  ItemEffect& label(std::string_view label) {
    raw_.label = keep(label);
    return *this;
  }
  /// When it is refused the message is rejected, not retried.
  ItemEffect& otherwise_reject() {
    raw_.on_refusal = SLUICE_REFUSED_REJECT;
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

  std::string clauses_[std::size(kClauses)];
  std::string condition_;
  std::vector<sluice_attribute> names_;
  Item values_;
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
class SqlEffect : public detail::Pending<sluice_effect_sql> {
 public:
  template <typename... Parameter>
  SqlEffect(const sluice_effects& effects, std::string_view statement, const Parameter&... parameters)
      : Pending(effects) {
    raw_.statement = keep(statement);
    raw_.rows = -1;
    (add(parameters), ...);
  }
  ~SqlEffect() noexcept(false) {
    if (wanted()) {
      raw_.parameters = values_.data();
      raw_.parameter_count = values_.size();
      stage(effects().run_sql);
    }
  }

  /// How many rows it has to change; any number unless that is said.
  SqlEffect& rows(std::int64_t count) {
    raw_.rows = count;
    return *this;
  }
  /// By which a refusal names it.
  SqlEffect& label(std::string_view label) {
    raw_.label = keep(label);
    return *this;
  }
  /// When it is refused the message is rejected, not retried.
  SqlEffect& otherwise_reject() {
    raw_.on_refusal = SLUICE_REFUSED_REJECT;
    return *this;
  }

 private:
  void add(std::nullptr_t) { values_.push_back({SLUICE_SQL_NULL, 0, 0, 0, {}}); }
  void add(std::integral auto number) {
    if (!std::in_range<std::int64_t>(static_cast<decltype(number + 0)>(number))) {
      throw EffectError("the parameter ?" + std::to_string(values_.size() + 1) + " of \"" +
                        std::string(detail::view(raw_.statement)) +
                        "\" is larger than SQLite's integers: make it a text");
    }
    values_.push_back({SLUICE_SQL_INTEGER, 0, static_cast<std::int64_t>(number), 0, {}});
  }
  void add(std::floating_point auto number) {
    values_.push_back({SLUICE_SQL_REAL, 0, 0, static_cast<double>(number), {}});
  }
  void add(std::string_view text) { values_.push_back({SLUICE_SQL_TEXT, 0, 0, 0, keep(text)}); }
  void add(const Blob& blob) { values_.push_back({SLUICE_SQL_BLOB, 0, 0, 0, keep(blob.bytes)}); }
  template <typename T>
  void add(const std::optional<T>& value) {
    value ? add(*value) : add(nullptr);
  }

  std::vector<sluice_sql_value> values_;
};

}  // namespace sluice
