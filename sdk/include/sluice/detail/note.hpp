#pragma once

/// What a plugin declares, as an ELF note in its file: `sluice plugin inspect` and the host read it without running a
/// line of the plugin. docs/write/abi.md ("The note") has the format. Written at compile time; nothing of it is used
/// when the plugin runs.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "sluice/abi.h"

#define SLUICE_NOTE_TEXT_OF(number) #number
#define SLUICE_NOTE_TEXT(number) SLUICE_NOTE_TEXT_OF(number)

namespace sluice::detail {

inline constexpr std::uint32_t kNoteFormat = 1;
/// The length of a text that is not there, in contrast to one that is empty.
inline constexpr std::uint32_t kNoText = 0xffffffff;
inline constexpr const char* kCompiler =
#if defined(__clang__)
    "clang " SLUICE_NOTE_TEXT(__clang_major__) "." SLUICE_NOTE_TEXT(__clang_minor__);
#elif defined(__GNUC__)
    "gcc " SLUICE_NOTE_TEXT(__GNUC__) "." SLUICE_NOTE_TEXT(__GNUC_MINOR__);
#else
    nullptr;
#endif

/// Counts the bytes of a note, and writes them where there is room for them.
class NoteWriter {
 public:
  constexpr explicit NoteWriter(unsigned char* out) : out_(out) {}

  constexpr std::size_t size() const { return size_; }
  constexpr void number(std::uint32_t value) {
    for (int shift = 0; shift < 32; shift += 8) {
      byte(static_cast<unsigned char>((value >> shift) & 0xff));
    }
  }
  constexpr void text(const char* text) {
    if (text == nullptr) {
      number(kNoText);
      return;
    }
    const std::string_view view(text);
    number(static_cast<std::uint32_t>(view.size()));
    if (out_ == nullptr) {
      size_ += view.size();
      return;
    }
    for (const char c : view) {
      byte(static_cast<unsigned char>(c));
    }
  }
  /// What `write` writes, after its size, so that a reader can skip what it does not know.
  template <typename Write>
  constexpr void record(Write write) {
    NoteWriter counter(nullptr);
    write(counter);
    number(static_cast<std::uint32_t>(counter.size()));
    write(*this);
  }

 private:
  constexpr void byte(unsigned char value) {
    if (out_ != nullptr) {
      out_[size_] = value;
    }
    ++size_;
  }

  unsigned char* out_;
  std::size_t size_ = 0;
};

constexpr void write_option(NoteWriter& note, const sluice_option& option) {
  note.number(static_cast<std::uint32_t>(option.type));
  note.number(option.flags);
  note.text(option.name);
  note.text(option.default_value);
  note.text(option.help);
}

/// `kind`: the feature that makes the handler one of another kind; null: an ordinary one.
constexpr void write_handler(NoteWriter& note, const sluice_handler& handler, const char* kind) {
  note.number(handler.flags);
  note.text(handler.name);
  note.text(handler.help);
  note.number(kind == nullptr ? 0 : 1);
  if (kind != nullptr) {
    note.text(kind);
  }
  note.number(static_cast<std::uint32_t>(handler.option_count));
  for (std::size_t i = 0; i < handler.option_count; ++i) {
    note.record([&](NoteWriter& record) { write_option(record, *handler.options[i]); });
  }
}

constexpr void write_note(NoteWriter& note, const sluice_plugin& plugin, std::span<const char* const> kinds) {
  note.number(kNoteFormat);
  note.number(plugin.abi_major);
  note.number(plugin.abi_minor);
  note.text(plugin.name);
  note.text(plugin.version);
  note.text(kCompiler);
  note.number(static_cast<std::uint32_t>(plugin.handler_count));
  for (std::size_t i = 0; i < plugin.handler_count; ++i) {
    note.record([&](NoteWriter& record) { write_handler(record, *plugin.handlers[i], kinds[i]); });
  }
}

/// The note as it lies in its section.
template <std::size_t size>
struct Note {
  std::uint32_t owner_size = 7;
  std::uint32_t size_of_content = size;
  std::uint32_t type = 1;
  char owner[8] = "Sluice";
  unsigned char content[(size + 3) / 4 * 4] = {};
};

/// `Table` has `make` (the plugin's table) and `kKinds` (of its handlers).
template <typename Table>
consteval auto make_note() {
  constexpr std::size_t kSize = [] {
    NoteWriter counter(nullptr);
    write_note(counter, Table::make(), Table::kKinds);
    return counter.size();
  }();
  Note<kSize> note;
  NoteWriter writer(note.content);
  write_note(writer, Table::make(), Table::kKinds);
  return note;
}

}  // namespace sluice::detail
