#include "host/isolation/crash_report.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstring>
#include <map>
#include <string_view>

#include "base/text/utf8.hpp"
#include "host/isolation/symbol_table.hpp"

namespace sluice::isolation {
namespace {

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
