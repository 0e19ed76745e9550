#include "host/isolation/crash_report.hpp"

#include <elf.h>

#include <charconv>
#include <csignal>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>

#include "base/text/utf8.hpp"
#include "host/plugin/plugin_library.hpp"

namespace sluice::isolation {

namespace {

/// Of a table that is read at all; the largest libraries here have a tenth of it.
constexpr std::uint64_t kTableLimit = 256ULL * 1024 * 1024;

/// Reads within the file, or nothing.
template <typename T>
std::vector<T> read_array(std::ifstream& file, std::uint64_t offset, std::uint64_t bytes) {
  std::vector<T> values;
  if (bytes > kTableLimit) {
    return values;
  }
  values.resize(bytes / sizeof(T));
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
  if (!file) {
    values.clear();
  }
  return values;
}

/// The full table when the file still has it, or else what it exports.
const Elf64_Shdr* find_symbols(const std::vector<Elf64_Shdr>& sections) {
  const Elf64_Shdr* found = nullptr;
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type == SHT_SYMTAB || (section.sh_type == SHT_DYNSYM && found == nullptr)) {
      found = &section;
    }
  }
  return found != nullptr && found->sh_link < sections.size() ? found : nullptr;
}

/// A jump through a null pointer names the member's offset and says something; other addresses differ from run to run.
constexpr std::uint64_t kTellingAddress = 0x10000;
constexpr std::size_t kShownFrames = 12;

std::string clean(std::string_view text) { return clean_utf8(text, text.size() * 3); }

std::string hex(std::uint64_t number) {
  std::array<char, 20> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, 16).ptr;
  return "0x" + std::string(digits.data(), end);
}

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// Where the file of a module is: a plugin that was loaded from memory is known by its descriptor only.
std::string module_file(const std::string& name, const std::string& plugin) {
  return name.starts_with("/proc/self/fd/") && !plugin.empty() ? plugin : name;
}

bool is_fault(int signal) { return signal == SIGSEGV || signal == SIGBUS; }

}  // namespace

SymbolTable::SymbolTable(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Elf64_Ehdr header{};
  file.read(reinterpret_cast<char*>(&header), sizeof(header));
  if (!file || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_shentsize != sizeof(Elf64_Shdr)) {
    return;
  }
  const auto sections =
      read_array<Elf64_Shdr>(file, header.e_shoff, std::uint64_t{header.e_shnum} * sizeof(Elf64_Shdr));
  const Elf64_Shdr* table = find_symbols(sections);
  if (table == nullptr) {
    return;
  }
  const auto symbols = read_array<Elf64_Sym>(file, table->sh_offset, table->sh_size);
  const Elf64_Shdr& strings = sections[table->sh_link];
  auto names = read_array<char>(file, strings.sh_offset, strings.sh_size);
  names.push_back('\0');
  for (const Elf64_Sym& symbol : symbols) {
    if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_value != 0 && symbol.st_name < names.size()) {
      functions_.push_back({symbol.st_value, symbol.st_size, names.data() + symbol.st_name});
    }
  }
  std::sort(functions_.begin(), functions_.end(),
            [](const Function& left, const Function& right) { return left.start < right.start; });
}

std::string SymbolTable::name_at(std::uint64_t offset) const {
  auto after = std::upper_bound(functions_.begin(), functions_.end(), offset,
                                [](std::uint64_t at, const Function& function) { return at < function.start; });
  if (after == functions_.begin()) {
    return {};
  }
  const Function& function = *--after;
  const std::uint64_t distance = offset - function.start;
  if (function.size != 0 && distance >= function.size) {
    return {};
  }
  return plugin::demangled(function.name) + "+" + hex(distance);
}

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? "SIG" + std::string(name) : "signal " + std::to_string(signal);
}

std::optional<CrashReport> read_crash(const CrashRecord& record) {
  const std::uint32_t state = record.state.load();
  if (state < CrashRecord::written || state > CrashRecord::complete) {
    return std::nullopt;
  }
  CrashReport report;
  report.cause = static_cast<CrashCause>(record.cause);
  report.signal = record.signal;
  report.exit_code = record.exit_code;
  report.address = record.address;
  report.time = WallTime(Duration(record.time));
  report.memory = record.memory;
  report.slot = record.slot;
  report.blamed = record.blamed != 0;
  report.job = clean(record.job.view());
  report.handler = clean(record.handler.view());
  report.plugin = clean(record.plugin.view());
  report.message = clean(record.message.view());
  report.what = clean(record.what.view());
  std::map<std::string, SymbolTable> tables;
  const std::size_t frames = std::min<std::size_t>(record.frame_count, kStackLimit);
  const std::size_t modules = std::min<std::size_t>(record.module_count, kModuleLimit);
  for (std::size_t i = 0; i < frames; ++i) {
    const CrashRecord::Frame& frame = record.frames[i];
    StackFrame& shown = report.stack.emplace_back();
    shown.offset = frame.offset;
    if (frame.module >= modules) {
      shown.text = hex(frame.offset);
      continue;
    }
    shown.module = module_file(clean(record.modules[frame.module].view()), report.plugin);
    const SymbolTable& table = tables.try_emplace(shown.module, shown.module).first->second;
    // All but the first are where a call returns to, which may be past the end of the function that made it.
    const std::string name = table.name_at(i == 0 ? frame.offset : frame.offset - 1);
    shown.text = (name.empty() ? hex(frame.offset) : clean(name)) + " in " + file_name(shown.module);
  }
  return report;
}

std::string CrashReport::summary() const {
  std::string text = cause == CrashCause::exit   ? "the handler called exit(" + std::to_string(exit_code) + ")"
                     : cause == CrashCause::look ? std::string("killed")
                                                 : signal_name(signal);
  if (cause == CrashCause::signal && is_fault(signal) && address < kTellingAddress) {
    text += " at address " + hex(address);
  }
  if (blamed) {
    text += " in handler '" + handler + "' of " + file_name(plugin);
  }
  if (!what.empty()) {
    text += ": an exception that nobody caught: " + what;
  }
  return text;
}

std::string CrashReport::stack_text() const {
  std::string text;
  for (std::size_t i = 0; i < std::min(stack.size(), kShownFrames); ++i) {
    text += (i == 0 ? "" : " < ") + stack[i].text;
  }
  return text;
}

std::string CrashReport::failure_text(std::size_t limit) const {
  const std::string frames = stack_text();
  std::string text = summary() + (frames.empty() ? "" : "; stack: " + frames);
  std::replace(text.begin(), text.end(), '\n', ' ');
  return clean_utf8(text, limit);
}

}  // namespace sluice::isolation
