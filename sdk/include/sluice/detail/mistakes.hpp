#pragma once

/// What the compiler says to an author whose handler is almost one: the rule, and what is wrong with this class.

#include <concepts>
#include <type_traits>

#include "sluice/context.hpp"
#include "sluice/message.hpp"
#include "sluice/outcome.hpp"

namespace sluice::detail {

template <typename H>
concept HandlesWithAnyReturn = requires(H& handler, const Message& message, Context& context) {
  handler.handle(message, context);
};
template <typename H>
concept HandlesMutableMessages = requires(H& handler, Message& message, Context& context) {
  handler.handle(message, context);
};
template <typename H>
concept HandlesMessageAlone = requires(H& handler, const Message& message) {
  handler.handle(message);
};
template <typename H>
concept HandlesContextFirst = requires(H& handler, const Message& message, Context& context) {
  handler.handle(context, message);
};

/// True for a handle that takes a Message or a Context by value, of whatever member function F points to.
template <typename F>
inline constexpr bool kTakesByValue = false;
template <typename H, typename R, typename M, typename C>
inline constexpr bool kTakesByValue<R (H::*)(M, C)> = std::same_as<M, Message> || std::same_as<C, Context>;
template <typename H, typename R, typename M, typename C>
inline constexpr bool kTakesByValue<R (H::*)(M, C) const> = kTakesByValue<R (H::*)(M, C)>;

struct NamedHandle {
  int handle;
};
template <typename H>
struct WithNamedHandle : H, NamedHandle {};
/// True for a class with a member `handle`, whoever may call it: then the name has two meanings in WithNamedHandle.
template <typename H>
concept HasHandle = std::is_class_v<H> && !std::is_final_v<H> && !requires {
  &WithNamedHandle<H>::handle;
};
struct NamedOptions {
  int options;
};
template <typename H>
struct WithNamedOptions : H, NamedOptions {};
/// The same of a member `options`.
template <typename H>
concept HasOptions = std::is_class_v<H> && !std::is_final_v<H> && !requires {
  &WithNamedOptions<H>::options;
};
template <typename H>
concept ShowsHandle = requires {
  &H::handle;
};

template <typename H>
concept HandlesByValue = ShowsHandle<H> && kTakesByValue<decltype(&H::handle)>;

template <typename>
inline constexpr bool kNever = false;

#define SLUICE_HANDLER_NEEDS "a handler needs: sluice::Outcome handle(const sluice::Message&, sluice::Context&)"
#define SLUICE_OTHER_HANDLES                                                                              \
  " (for batches: std::vector<sluice::Outcome> handle(std::span<const sluice::Message>, "                 \
  "sluice::BatchContext&); to complete later: void handle(const sluice::Message&, sluice::AsyncContext)," \
  " or as a coroutine sluice::Task<sluice::Outcome> handle(const sluice::Message&, sluice::AsyncContext&))"

/// Does not compile, and says why, for a class whose `handle` the host cannot call.
template <typename H>
constexpr void explain_handle() {
  if constexpr (HandlesWithAnyReturn<H>) {
    static_assert(kNever<H>, SLUICE_HANDLER_NEEDS
                  "; the handle of this class returns something else: make it return sluice::Outcome, such as "
                  "sluice::done()");
  } else if constexpr (HandlesMutableMessages<H>) {
    static_assert(kNever<H>, SLUICE_HANDLER_NEEDS
                  "; the handle of this class lacks the const of its message: take const sluice::Message&");
  } else if constexpr (HandlesMessageAlone<H>) {
    static_assert(kNever<H>, SLUICE_HANDLER_NEEDS
                  "; the handle of this class takes a message alone: add sluice::Context& as its second parameter");
  } else if constexpr (HandlesContextFirst<H>) {
    static_assert(kNever<H>,
                  SLUICE_HANDLER_NEEDS "; the handle of this class takes the context first: exchange its parameters");
  } else if constexpr (HandlesByValue<H>) {
    static_assert(kNever<H>, SLUICE_HANDLER_NEEDS
                  "; the handle of this class takes its message or its context by value: take them by reference");
  } else if constexpr (HasHandle<H> && !ShowsHandle<H>) {
    static_assert(kNever<H>, SLUICE_HANDLER_NEEDS
                  "; the handle of this class is not public, or has overloads of which none is that: make it public");
  } else if constexpr (HasHandle<H>) {
    static_assert(kNever<H>,
                  SLUICE_HANDLER_NEEDS "; the handle of this class takes other parameters" SLUICE_OTHER_HANDLES);
  } else {
    static_assert(kNever<H>, SLUICE_HANDLER_NEEDS
                  "; this class has no member function handle that can be called" SLUICE_OTHER_HANDLES);
  }
}

}  // namespace sluice::detail
