#pragma once

/// What a plugin author includes. Header-only, C++20, the standard library and nothing else.
///
/// A handler is a class with `Outcome handle(const Message&, Context&)`. Where that is `const`, one instance serves all
/// workers of a job at once; otherwise each worker has an instance of its own. It is constructed from
/// `(const Options&, Host)`, `(const Options&)` or nothing, and may have these static members:
///
///     static constexpr const char* name = "...";            // default: the plugin's name
///     static constexpr const char* help = "...";            // one or two sentences
///     static constexpr sluice::OptionSpec options[] = {...};  // see OptionSpec; without it the host checks no option
///     static constexpr bool only_sends = true;                // does nothing but context.send: rows go in batches
///     static const void* extension(std::string_view id);      // features beyond the core, by id
///
/// Instead of that `handle` a handler may have one for several messages at once (<sluice/batch.hpp>), or one that ends
/// its message later (<sluice/async.hpp>).
/// A class with `enter` and `leave` instead goes around the handlers of jobs that ask for it: see around.hpp.
///
/// An exception out of the constructor keeps the job from starting, with its text. One out of `handle` is a fault: the
/// message is retried by the job's policy, with the text as the reason.

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/abi.h"
#include "sluice/around.hpp"
#include "sluice/async.hpp"
#include "sluice/batch.hpp"
#include "sluice/context.hpp"
#include "sluice/detail/mistakes.hpp"
#include "sluice/detail/note.hpp"
#include "sluice/detail/report.hpp"
#include "sluice/detail/words.hpp"
#include "sluice/host.hpp"
#include "sluice/message.hpp"
#include "sluice/options.hpp"
#include "sluice/outcome.hpp"

namespace sluice {

namespace detail {

template <typename H>
concept Constructible = std::constructible_from<H, const Options&, Host> ||
    std::constructible_from<H, const Options&> || std::default_initializable<H>;
template <typename H>
concept Handles = requires(H& handler, const Message& message, Context& context) {
  { handler.handle(message, context) } -> std::same_as<Outcome>;
};
/// A coroutine that was made of an ordinary handle, by half.
template <typename H>
concept HandlesAsPlainCoroutine = ShowsHandle<H> && requires(H& handler, const Message& message, Context& context) {
  { handler.handle(message, context) } -> std::same_as<Task<Outcome>>;
};
template <typename H>
concept HandlesAny = Handles<H> || HandlesBatch<H> || HandlesAsync<H>;
template <typename H>
concept Concurrent = HandlesAny<const H> || GoesAround<const H>;
/// A static member: a handler may well have one of its own that is called so.
template <typename H>
concept Named = requires {
  std::string_view(H::name);
  requires !std::is_member_pointer_v<decltype(&H::name)>;
};
template <typename H>
concept Helpful = requires {
  std::string_view(H::help);
  requires !std::is_member_pointer_v<decltype(&H::help)>;
};
template <typename H>
concept DeclaresOptions = requires {
  std::size(H::options);
  std::span<const OptionSpec>(H::options);
  requires !std::is_member_pointer_v<decltype(&H::options)>;
};
template <typename H>
concept OnlySends = Handles<H> && requires {
  requires static_cast<bool>(H::only_sends);
};
template <typename H>
concept Extensible = requires(std::string_view id) {
  { H::extension(id) } -> std::convertible_to<const void*>;
};

/// Nothing when H takes any option.
template <typename H>
constexpr std::optional<std::span<const OptionSpec>> declared_options() {
  if constexpr (DeclaresOptions<H>) {
    return std::span<const OptionSpec>(H::options);
  } else {
    return std::nullopt;
  }
}

/// The functions of the C table for handler H. Nothing is thrown out of them.
template <typename H>
struct Thunks {
  static std::int32_t create(const sluice_host* host, const sluice_option_value* const* values, std::size_t count,
                             void** instance, void (*fail)(void*, sluice_string), void* sink) noexcept {
    const auto construct = [&] {
      if (HandlesAsync<Callee> && host->extension(host, SLUICE_ASYNC_1) == nullptr) {
        throw std::runtime_error(kNeedsAsync);
      }
      const Options options(values, count, declared_options<H>());
      if constexpr (std::constructible_from<H, const Options&, Host>) {
        *instance = new H(options, Host(*host));
      } else if constexpr (std::constructible_from<H, const Options&>) {
        *instance = new H(options);
      } else {
        *instance = new H();
      }
    };
    return guard(construct, [&](std::string_view why) { fail(sink, borrow(why)); }) ? 0 : 1;
  }

  static void destroy(void* instance) noexcept { delete static_cast<H*>(instance); }

  using Callee = std::conditional_t<Concurrent<H>, const H, H>;

  static void handle(void* instance, const sluice_message* raw_message, const sluice_context* raw_context) noexcept {
    if constexpr (HandlesBatch<Callee>) {
      handle_batch(instance, &raw_message, &raw_context, 1);
    } else if constexpr (HandlesAsync<Callee>) {
      report(*raw_context, SLUICE_FAULT, Outcome::kByPolicy, kNeedsAsync);
    } else {
      or_fault(*raw_context, [&] {
        const Message message(*raw_message);
        Context context(*raw_context, *raw_message);
        report(*raw_context, context, static_cast<Callee*>(instance)->handle(message, context));
      });
    }
  }

  static void handle_batch(void* instance, const sluice_message* const* raw_messages,
                           const sluice_context* const* raw_contexts, std::size_t count) noexcept {
    const auto work = [&] {
      Row<Message> messages(count);
      Row<Context> contexts(count);
      for (std::size_t i = 0; i < count; ++i) {
        messages.add(*raw_messages[i]);
        contexts.add(*raw_contexts[i], *raw_messages[i]);
      }
      BatchContext batch(contexts.all());
      const auto outcomes = static_cast<Callee*>(instance)->handle(std::as_const(messages).all(), batch);
      if constexpr (HandlesBatchOneByOne<Callee>) {
        if (outcomes.size() != count) {
          throw std::length_error("the handler returned " + std::to_string(outcomes.size()) + " outcomes for " +
                                  std::to_string(count) + " messages: a defect of the plugin");
        }
      }
      for (std::size_t i = 0; i < count; ++i) {
        // What cannot be reported of one message is its own fault.
        or_fault(*raw_contexts[i], [&] { report(*raw_contexts[i], contexts[i], outcome_at(outcomes, i)); });
      }
    };
    guard(work, [&](std::string_view why) {
      for (std::size_t i = 0; i < count; ++i) {
        report(*raw_contexts[i], SLUICE_FAULT, Outcome::kByPolicy, why);
      }
    });
  }
  static const Outcome& outcome_at(const Outcome& all, std::size_t) { return all; }
  static const Outcome& outcome_at(const std::vector<Outcome>& each, std::size_t i) { return each[i]; }

  static void begin(void* instance, const sluice_message* raw_message,
                    const sluice_async_context* raw_context) noexcept {
    // The context may be gone by the end of it.
    or_end(*raw_context->async, raw_context->token, [&] {
      if constexpr (HandlesAsCoroutine<Callee>) {
        // The coroutine ends its message itself; it throws only where there is no memory for it.
        drive(*static_cast<Callee*>(instance), *raw_message, *raw_context);
      } else {
        const Message message(*raw_message);
        static_cast<Callee*>(instance)->handle(message, AsyncContext(*raw_context, *raw_message));
      }
    });
  }

  static constexpr const char* kNeedsAsync =
      "this host has no sluice.async/1, which the handler needs: update the host";
  static constexpr sluice_effects_handler kOnlySends{sizeof(sluice_effects_handler), 1};
  static constexpr sluice_batch kBatch{sizeof(sluice_batch), 0, &handle_batch};
  static constexpr sluice_async kAsync{sizeof(sluice_async), 0, &begin};

  /// The features of the kind that the handler is of, and its own.
  static const void* extension(const char* id) noexcept {
    if constexpr (HandlesBatch<Callee>) {
      if (std::string_view(id) == SLUICE_BATCH_1) {
        return &kBatch;
      }
    }
    if constexpr (HandlesAsync<Callee>) {
      if (std::string_view(id) == SLUICE_ASYNC_1) {
        return &kAsync;
      }
    }
    return own_extension(id);
  }
  static const void* own_extension(const char* id) noexcept {
    const void* feature = nullptr;
    if constexpr (OnlySends<H>) {
      if (std::string_view(id) == SLUICE_EFFECTS_1) {
        return &kOnlySends;
      }
    }
    if constexpr (GoesAround<H>) {
      if (std::string_view(id) == SLUICE_AROUND_1) {
        return &AroundThunks<H>::kTable;
      }
    }
    if constexpr (Extensible<H>) {
      guard([&] { feature = H::extension(std::string_view(id)); }, [](std::string_view) {});
    }
    return feature;
  }
};

template <typename T, std::size_t count>
constexpr std::array<const T*, count> pointers_to(const std::array<T, count>& elements) {
  std::array<const T*, count> pointers{};
  for (std::size_t i = 0; i < count; ++i) {
    pointers[i] = &elements[i];
  }
  return pointers;
}

template <DeclaresOptions H>
constexpr std::array<sluice_option, std::size(H::options)> option_entries() {
  std::array<sluice_option, std::size(H::options)> entries{};
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const OptionSpec& spec = H::options[i];
    entries[i] = {sizeof(sluice_option), spec.type, spec.flags, 0, spec.name, spec.default_value, spec.help};
  }
  return entries;
}

/// The declared options of H as the C table wants them.
template <DeclaresOptions H>
struct OptionTable {
  static constexpr auto kEntries = option_entries<H>();
  static constexpr auto kPointers = pointers_to(kEntries);
};

template <typename H>
constexpr std::uint32_t handler_flags() {
  std::uint32_t flags = 0;
  if (Concurrent<H>) {
    flags |= SLUICE_HANDLER_CONCURRENT;
  }
  if (!DeclaresOptions<H>) {
    flags |= SLUICE_HANDLER_OPEN_OPTIONS;
  }
  return flags;
}

/// The feature by which the host knows that H is a handler of another kind than the ordinary one, for the plugin's
/// note; null: an ordinary one.
template <typename H>
constexpr const char* handler_kind() {
  if constexpr (HandlesBatch<H>) {
    return SLUICE_BATCH_1;
  } else if constexpr (HandlesAsync<H>) {
    return SLUICE_ASYNC_1;
  } else if constexpr (GoesAround<H>) {
    return SLUICE_AROUND_1;
  } else {
    return nullptr;
  }
}

constexpr bool are_options(std::span<const OptionSpec> options) {
  for (std::size_t i = 0; i < options.size(); ++i) {
    const std::string_view name = options[i].name;
    const auto before = options.first(i);
    const auto same = [name](const OptionSpec& other) { return name == other.name; };
    if (!is_word(name, kInOptionNames) || std::any_of(before.begin(), before.end(), same)) {
      return false;
    }
  }
  return true;
}

/// The table entry of handler H; `fallback` names it when it has no name of its own.
template <typename H>
constexpr sluice_handler handler_entry(const char* fallback) {
  sluice_handler handler{};
  handler.struct_size = sizeof(sluice_handler);
  handler.flags = handler_flags<H>();
  handler.name = fallback;
  if constexpr (Named<H>) {
    static_assert(std::convertible_to<decltype(H::name), const char*>,
                  "a handler's name is a const char*: static constexpr const char* name = \"...\"");
    handler.name = H::name;
  }
  if constexpr (Helpful<H>) {
    static_assert(std::convertible_to<decltype(H::help), const char*>,
                  "a handler's help is a const char*: static constexpr const char* help = \"...\"");
    handler.help = H::help;
  }
  static_assert(DeclaresOptions<H> || !HasOptions<H>,
                "a handler's options are a public list: static constexpr sluice::OptionSpec options[] = {...}; another "
                "member that is called `options` needs another name");
  if constexpr (DeclaresOptions<H>) {
    static_assert(are_options(H::options),
                  "an option's name is 1 to 64 letters, digits, '-' or '_', and no two of a handler have one name");
    handler.options = OptionTable<H>::kPointers.data();
    handler.option_count = OptionTable<H>::kPointers.size();
  }
  handler.create = &Thunks<H>::create;
  handler.destroy = &Thunks<H>::destroy;
  if constexpr (GoesAround<H>) {
    handler.handle = &AroundThunks<H>::handle;
  } else {
    handler.handle = &Thunks<H>::handle;
  }
  if constexpr (Extensible<H> || OnlySends<H> || !Handles<H>) {
    handler.extension = &Thunks<H>::extension;
  }
  return handler;
}

/// The same, for a class that may be no handler: then it does not compile, and says why.
template <typename H>
constexpr sluice_handler make_handler(const char* fallback) {
  if constexpr (!HandlesAny<H> && !Enters<H> && !Leaves<H>) {
    explain_handle<H>();
    return {};
  } else {
    static_assert(Enters<H> == Leaves<H>,
                  "a class that goes around others needs both: sluice::Entry enter(const sluice::Message&, "
                  "sluice::Context&) and void leave(sluice::Leaving&)");
    static_assert(!(HandlesAny<H> && GoesAround<H>),
                  "a class either handles messages or goes around: give `handle`, and `enter` and `leave`, to two "
                  "classes");
    static_assert(int{Handles<H>} + int{HandlesBatch<H>} + int{HandlesAsync<H>} <= 1,
                  "a handler has one handle: for one message, for a batch, or asynchronous");
    static_assert(
        !HandlesAsPlainCoroutine<H>,
        "a handle that is a coroutine takes a sluice::AsyncContext&: what waits with a sluice::Context& holds up "
        "all other messages");
    static_assert(Constructible<H>,
                  "a handler needs a constructor from (const sluice::Options&, sluice::Host), "
                  "(const sluice::Options&) or nothing; it has to be public, and the class not abstract");
    return handler_entry<H>(fallback);
  }
}

template <std::size_t count>
constexpr bool names_differ(const std::array<sluice_handler, count>& handlers) {
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (std::string_view(handlers[i].name) == handlers[j].name) {
        return false;
      }
    }
  }
  return true;
}

/// All tables of one plugin. `Identity` has its `name` and `version`.
template <typename Identity, typename... H>
struct PluginTable {
  static_assert(sizeof...(H) > 0, "a plugin needs a handler: SLUICE_PLUGIN(\"name\", \"1.0.0\", Handler)");
  static constexpr std::array<sluice_handler, sizeof...(H)> kHandlers{make_handler<H>(Identity::name)...};
  static constexpr auto kPointers = pointers_to(kHandlers);
  static constexpr std::array<const char*, sizeof...(H)> kKinds{handler_kind<H>()...};
  static_assert(is_word(Identity::name, kInNames) && is_word(Identity::version, kInVersions),
                "SLUICE_PLUGIN: name and version are 1 to 64 letters, digits, '-', '_' or '.', a version also '+', '~' "
                "or ':'");
  static_assert(std::all_of(kHandlers.begin(), kHandlers.end(),
                            [](const sluice_handler& one) {
                              return one.name == nullptr || is_word(one.name, kInNames);
                            }),
                "a handler's name is 1 to 64 letters, digits, '-', '_' or '.'");
  static_assert(names_differ(kHandlers), "two handlers of this plugin have one name: give each a static `name`");

  static constexpr sluice_plugin make() {
    return {sizeof(sluice_plugin), SLUICE_ABI_MAJOR,  SLUICE_PLUGIN_MAGIC, SLUICE_ABI_MINOR, 0,
            Identity::name,        Identity::version, kPointers.data(),    kPointers.size()};
  }
};

}  // namespace detail

}  // namespace sluice

/// Makes the plugin's one exported symbol: its name, its version, and the handlers in it; and a note of the same, which
/// is read from the file. Once in each plugin, outside of any namespace.
#define SLUICE_PLUGIN(plugin_name, plugin_version, ...)                                                     \
  namespace {                                                                                               \
  struct SluicePluginIdentity {                                                                             \
    static constexpr const char* name = plugin_name;                                                        \
    static constexpr const char* version = plugin_version;                                                  \
  };                                                                                                        \
  using SluicePluginTable = ::sluice::detail::PluginTable<SluicePluginIdentity __VA_OPT__(, ) __VA_ARGS__>; \
  [[gnu::section(".note.sluice"), gnu::used, gnu::aligned(4)]] constinit const auto sluice_plugin_note =    \
      ::sluice::detail::make_note<SluicePluginTable>();                                                     \
  }                                                                                                         \
  constinit const sluice_plugin sluice_plugin_v1 = SluicePluginTable::make();
