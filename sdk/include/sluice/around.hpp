#pragma once

#include <any>
#include <chrono>
#include <concepts>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/abi.h"
#include "sluice/around.h"
#include "sluice/context.hpp"
#include "sluice/detail/report.hpp"
#include "sluice/message.hpp"
#include "sluice/outcome.hpp"

/// Handlers that go around others: SLUICE_PLUGIN takes such a class like any handler, and a job names it in
/// [[job.around]].
///
///     struct Timing {
///       static constexpr const char* name = "timing";
///       sluice::Entry enter(const sluice::Message&, sluice::Context&) const {
///         return sluice::go_on().keep(std::chrono::steady_clock::now());
///       }
///       void leave(sluice::Leaving& call) const {
///         const auto took = std::chrono::steady_clock::now() - call.kept<std::chrono::steady_clock::time_point>();
///         call.context().info("took " + std::to_string(took.count()) + " ns");
///       }
///     };
///
/// Where both are `const` one instance serves all workers of a job at once. An exception out of either is a fault of
/// the message.
namespace sluice {

/// What `enter` makes of a call: it goes on, perhaps with another message, or ends with an outcome:
/// `return sluice::reject("no key")`. A value.
class Entry {
 public:
  Entry() = default;
  Entry(Outcome outcome) : outcome_(std::move(outcome)) {}  // NOLINT: `return sluice::retry()` is the way to answer

  /// What those further inwards see in place of what the message has.
  Entry&& body(std::string body) && {
    body_ = std::move(body);
    return std::move(*this);
  }
  Entry&& content_type(std::string type) && {
    content_type_ = std::move(type);
    return std::move(*this);
  }
  /// Adds an attribute, or gives it another value.
  Entry&& attribute(std::string name, std::string value) && {
    attributes_.insert_or_assign(std::move(name), std::move(value));
    return std::move(*this);
  }
  Entry&& without_attribute(std::string name) && {
    attributes_.insert_or_assign(std::move(name), std::nullopt);
    return std::move(*this);
  }
  /// For `leave`, which has it from `kept`.
  template <typename T>
  Entry&& keep(T&& value) && {
    kept_ = std::forward<T>(value);
    return std::move(*this);
  }

  /// Set: the call ends with it.
  const std::optional<Outcome>& outcome() const { return outcome_; }

  /// Writes what was replaced into `call`, which borrows from this object from then on. For the layer itself.
  void put(const Message& message, sluice_around_call& call) {
    if (body_) {
      call.body = detail::borrow(*body_);
    }
    if (content_type_) {
      call.content_type = detail::borrow(*content_type_);
    }
    if (attributes_.empty()) {
      return;
    }
    for (const Attribute& attribute : message.attributes()) {
      if (attributes_.find(std::string(attribute.name)) == attributes_.end()) {
        raw_.push_back({detail::borrow(attribute.name), detail::borrow(attribute.value)});
      }
    }
    for (const auto& [name, value] : attributes_) {
      if (value) {
        raw_.push_back({detail::borrow(name), detail::borrow(*value)});
      }
    }
    call.attributes = raw_.data();
    call.attribute_count = raw_.size();
  }

 private:
  friend class Leaving;

  std::optional<Outcome> outcome_;
  std::optional<std::string> body_;
  std::optional<std::string> content_type_;
  std::map<std::string, std::optional<std::string>> attributes_;  ///< nothing: taken away
  std::any kept_;
  std::vector<sluice_attribute> raw_;  ///< all that those further inwards see
};

/// The call goes on as it is, or with what is said behind it.
inline Entry go_on() { return {}; }

/// A call on its way out, as `leave` sees it. Valid until that returns.
class Leaving {
 public:
  Leaving(const Message& message, Context& context, const sluice_outcome& outcome, Entry* entry)
      : message_(message),
        context_(context),
        outcome_(outcome.status, std::string(detail::view(outcome.reason)), std::chrono::nanoseconds(outcome.delay)),
        entry_(entry) {}

  /// As `enter` has seen it.
  const Message& message() const { return message_; }
  Context& context() const { return context_; }
  /// What came from within: the handler's, SLUICE_FAULT with the text where it has thrown, or another's.
  const Outcome& outcome() const { return outcome_; }
  /// Takes its place, for those further out and for the message.
  void replace(Outcome outcome) {
    outcome_ = std::move(outcome);
    replaced_ = true;
  }
  bool replaced() const { return replaced_; }
  /// What `enter` has kept. Throws std::bad_any_cast when that was nothing, or of another type.
  template <typename T>
  T& kept() const {
    if (entry_ == nullptr) {
      throw std::bad_any_cast();
    }
    return std::any_cast<T&>(entry_->kept_);
  }

 private:
  const Message& message_;
  Context& context_;
  Outcome outcome_;
  Entry* entry_;
  bool replaced_ = false;
};

namespace detail {

template <typename A>
concept Enters = requires(A& around, const Message& message, Context& context) {
  { around.enter(message, context) } -> std::convertible_to<Entry>;
};
template <typename A>
concept Leaves = requires(A& around, Leaving& leaving) {
  { around.leave(leaving) } -> std::same_as<void>;
};
template <typename A>
concept GoesAround = Enters<A> && Leaves<A>;

/// The functions of the C table for a class that goes around. Nothing is thrown out of them.
template <typename A>
struct AroundThunks {
  using Callee = std::conditional_t<GoesAround<const A>, const A, A>;

  static sluice_around_answer enter(void* instance, const sluice_message* raw_message,
                                    const sluice_context* raw_context, sluice_around_call* call) noexcept {
    sluice_around_answer answer = SLUICE_AROUND_ANSWERED;
    or_fault(*raw_context, [&] {
      const Message message(*raw_message);
      Context context(*raw_context, *raw_message);
      auto entry = std::make_unique<Entry>(static_cast<Callee*>(instance)->enter(message, context));
      if (entry->outcome()) {
        return report(*raw_context, context, *entry->outcome());
      }
      entry->put(message, *call);
      call->cookie = entry.release();
      answer = SLUICE_AROUND_GO_ON;
    });
    return answer;
  }

  static void leave(void* instance, void* cookie, const sluice_message* raw_message, const sluice_context* raw_context,
                    const sluice_outcome* outcome) noexcept {
    const std::unique_ptr<Entry> entry(static_cast<Entry*>(cookie));
    or_fault(*raw_context, [&] {
      const Message message(*raw_message);
      Context context(*raw_context, *raw_message);
      Leaving leaving(message, context, *outcome, entry.get());
      static_cast<Callee*>(instance)->leave(leaving);
      if (leaving.replaced()) {
        report(*raw_context, context, leaving.outcome());
      }
    });
  }

  /// For a host that is older than this feature.
  static void handle(void*, const sluice_message*, const sluice_context* context) noexcept {
    report(
        *context, SLUICE_FAULT, Outcome::kByPolicy,
        "this handler goes around others, so it is to be named in [[job.around]]; where the host does not know that, "
        "update the host");
  }

  static constexpr sluice_around kTable{sizeof(sluice_around), 0, &enter, &leave};
};

}  // namespace detail
}  // namespace sluice
