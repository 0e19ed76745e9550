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
///     static const void* extension(std::string_view id);      // features beyond the core, by id
///
/// An exception out of the constructor keeps the job from starting, with its text. One out of `handle` is a fault: the
/// message is retried by the job's policy, with the text as the reason.

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <string_view>
#include <type_traits>

#include "sluice/abi.h"
#include "sluice/context.hpp"
#include "sluice/detail/note.hpp"
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
template <typename H>
concept Concurrent = Handles<const H>;
template <typename H>
concept Named = requires {
  std::string_view(H::name);
};
template <typename H>
concept Helpful = requires {
  std::string_view(H::help);
};
template <typename H>
concept DeclaresOptions = requires {
  std::size(H::options);
};
template <typename H>
concept Extensible = requires(std::string_view id) {
  { H::extension(id) } -> std::convertible_to<const void*>;
};

/// Runs `body` and hands the text of what it throws to `failed`; true when it throws nothing.
template <typename Body, typename Failed>
bool guard(Body body, Failed failed) noexcept {
  try {
    body();
    return true;
  } catch (const std::exception& error) {
    const char* what = error.what();
    failed(std::string_view(what == nullptr ? "" : what));
  } catch (...) {
    failed(std::string_view("threw something that is not a std::exception"));
  }
  return false;
}

/// The functions of the C table for handler H. Nothing is thrown out of them.
template <typename H>
struct Thunks {
  static std::int32_t create(const sluice_host* host, const sluice_option_value* const* values, std::size_t count,
                             void** instance, void (*fail)(void*, sluice_string), void* sink) noexcept {
    const auto construct = [&] {
      const Options options(values, count);
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

  static void handle(void* instance, const sluice_message* raw_message, const sluice_context* raw_context) noexcept {
    const auto report = [raw_context](sluice_status status, std::chrono::nanoseconds delay, std::string_view reason) {
      const sluice_outcome outcome{sizeof(sluice_outcome), status, delay.count(), borrow(reason)};
      raw_context->report(raw_context, &outcome);
    };
    const auto work = [&] {
      using Callee = std::conditional_t<Concurrent<H>, const H, H>;
      const Message message(*raw_message);
      Context context(*raw_context, *raw_message);
      const Outcome outcome = static_cast<Callee*>(instance)->handle(message, context);
      if (!outcome.result().empty()) {
        context.set_result(outcome.result());
      }
      report(outcome.status(), outcome.delay(), outcome.reason());
    };
    guard(work, [&](std::string_view why) { report(SLUICE_FAULT, Outcome::kByPolicy, why); });
  }

  static const void* extension(const char* id) noexcept {
    const void* feature = nullptr;
    guard([&] { feature = H::extension(std::string_view(id)); }, [](std::string_view) {});
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
  return nullptr;
}

/// The table entry of handler H; `fallback` names it when it has no name of its own.
template <typename H>
constexpr sluice_handler make_handler(const char* fallback) {
  static_assert(Handles<H>, "a handler needs: sluice::Outcome handle(const sluice::Message&, sluice::Context&)");
  static_assert(Constructible<H>,
                "a handler needs a constructor from (const sluice::Options&, sluice::Host), "
                "(const sluice::Options&) or nothing");
  sluice_handler handler{};
  handler.struct_size = sizeof(sluice_handler);
  handler.flags = handler_flags<H>();
  handler.name = fallback;
  if constexpr (Named<H>) {
    handler.name = H::name;
  }
  if constexpr (Helpful<H>) {
    handler.help = H::help;
  }
  if constexpr (DeclaresOptions<H>) {
    handler.options = OptionTable<H>::kPointers.data();
    handler.option_count = OptionTable<H>::kPointers.size();
  }
  handler.create = &Thunks<H>::create;
  handler.destroy = &Thunks<H>::destroy;
  handler.handle = &Thunks<H>::handle;
  if constexpr (Extensible<H>) {
    handler.extension = &Thunks<H>::extension;
  }
  return handler;
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
  static constexpr std::array<sluice_handler, sizeof...(H)> kHandlers{make_handler<H>(Identity::name)...};
  static constexpr auto kPointers = pointers_to(kHandlers);
  static constexpr std::array<const char*, sizeof...(H)> kKinds{handler_kind<H>()...};
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
#define SLUICE_PLUGIN(plugin_name, plugin_version, ...)                                                  \
  namespace {                                                                                            \
  struct SluicePluginIdentity {                                                                          \
    static constexpr const char* name = plugin_name;                                                     \
    static constexpr const char* version = plugin_version;                                               \
  };                                                                                                     \
  using SluicePluginTable = ::sluice::detail::PluginTable<SluicePluginIdentity, __VA_ARGS__>;            \
  [[gnu::section(".note.sluice"), gnu::used, gnu::aligned(4)]] constinit const auto sluice_plugin_note = \
      ::sluice::detail::make_note<SluicePluginTable>();                                                  \
  }                                                                                                      \
  constinit const sluice_plugin sluice_plugin_v1 = SluicePluginTable::make();
