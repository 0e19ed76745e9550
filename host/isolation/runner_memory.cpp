#include "host/isolation/runner_memory.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <boost/pfr/core.hpp>
#include <cerrno>
#include <cstring>

#include "base/text/utf8.hpp"

namespace sluice::isolation {
namespace {

Error no_memory(std::size_t size, int code) {
  return Error(ErrorCode::full, "no shared memory of " + std::to_string(size) +
                                    " bytes for a handler's process: " + std::strerror(code));
}

char* map(int descriptor, std::size_t size) {
  void* const data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  return data == MAP_FAILED ? nullptr : static_cast<char*>(data);
}

constexpr std::uint32_t kRoom = RunnerControl::kRoom;
constexpr Duration kRoomLook = std::chrono::milliseconds(50);

std::uint32_t padded(std::uint32_t size) { return (size + 7U) & ~7U; }

/// Copies over the ring's end, where it must.
void copy_in(RunnerControl& control, std::uint32_t at, const char* data, std::uint32_t size) {
  const std::uint32_t offset = at % kRoom;
  const std::uint32_t first = std::min(size, kRoom - offset);
  std::copy_n(data, first, control.room.data() + offset);
  std::copy_n(data + first, size - first, control.room.data());
}

void copy_out(const RunnerControl& control, std::uint32_t at, char* data, std::uint32_t size) {
  const std::uint32_t offset = at % kRoom;
  const std::uint32_t first = std::min(size, kRoom - offset);
  std::copy_n(control.room.data() + offset, first, data);
  std::copy_n(control.room.data(), size - first, data + first);
}

// What travels is a number, a text, or made of such. The members of a record follow each other as they are declared.

template <typename Value>
concept Number = std::is_arithmetic_v<Value> || std::is_enum_v<Value>;
template <typename Value>
concept ScopedEnum = Number<Value> && std::is_enum_v<Value> && !std::is_convertible_v<Value, int>;
template <typename Value>
concept Text = std::is_convertible_v<const Value&, std::string_view>;
/// An optional, or a pointer.
template <typename Value>
concept Maybe = requires(const Value& value) {
  *value;
  static_cast<bool>(value);
};
template <typename Value>
concept Map = requires {
  typename Value::mapped_type;
};
template <typename Value>
concept List = !Text<Value> && requires(Value & value) {
  value.emplace_back();
};
template <typename Value>
concept Record = std::is_aggregate_v<Value>;

/// The last value of each enumeration that is read: not every number is one.
template <ScopedEnum Value>
constexpr Value kLast{};
template <>
constexpr queue::Priority kLast<queue::Priority> = queue::Priority::low;
template <>
constexpr queue::UniqueUntil kLast<queue::UniqueUntil> = queue::UniqueUntil::done;
template <>
constexpr queue::OnRefusal kLast<queue::OnRefusal> = queue::OnRefusal::reject;
template <>
constexpr queue::ItemAction kLast<queue::ItemAction> = queue::ItemAction::check;

/// Writes numbers as they lie in memory, and text behind its length; without a place to write to it counts only.
class Writer {
 public:
  explicit Writer(char* at = nullptr) : at_(at) {}

  template <Number Value>
  void write(Value value) {
    put(&value, sizeof(value));
  }
  void write(Duration value) { write(value.count()); }
  void write(WallTime value) { write(value.time_since_epoch().count()); }
  void write(std::monostate) {}
  template <Text Value>
  void write(const Value& value) {
    const std::string_view text = value;
    write(std::uint64_t{text.size()});
    put(text.data(), text.size());
  }
  template <Maybe Value>
  void write(const Value& value) {
    write(static_cast<bool>(value));
    if (value) {
      write(*value);
    }
  }
  template <typename... Kinds>
  void write(const std::variant<Kinds...>& value) {
    write(static_cast<std::uint8_t>(value.index()));
    std::visit([&](const auto& kind) { write(kind); }, value);
  }
  template <typename First, typename Second>
  void write(const std::pair<First, Second>& value) {
    write(value.first);
    write(value.second);
  }
  template <typename Values>
  requires List<Values> || Map<Values>
  void write(const Values& values) {
    write(std::uint64_t{values.size()});
    for (const auto& value : values) {
      write(value);
    }
  }
  template <Record Value>
  void write(const Value& value) {
    boost::pfr::for_each_field(value, [&](const auto& member) { write(member); });
  }

  std::size_t size() const { return size_; }

 private:
  void put(const void* bytes, std::size_t size) {
    if (at_ != nullptr && size > 0) {
      std::memcpy(at_ + size_, bytes, size);
    }
    size_ += size;
  }

  char* const at_;
  std::size_t size_ = 0;
};

/// Reads the same, within its bytes whatever they say.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  template <Number Value>
  void read(Value& value) {
    value = {};
    const std::string_view bytes = take(sizeof(value));
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(&value));
  }
  template <ScopedEnum Value>
  void read(Value& value) {
    const auto number = next<std::underlying_type_t<Value>>();
    value = static_cast<Value>(number);
    good_ = good_ && value <= kLast<Value>;
  }
  void read(bool& value) {
    const auto number = next<std::uint8_t>();
    value = number != 0;
    good_ = good_ && number <= 1;
  }
  void read(Duration& value) {
    value = Duration(next<Duration::rep>());
    good_ = good_ && value >= Duration::zero();
  }
  void read(WallTime& value) { value = WallTime(Duration(next<Duration::rep>())); }
  void read(std::monostate) {}
  void read(std::string& value) { value = take(next<std::uint64_t>()); }
  template <typename Value>
  void read(std::optional<Value>& value) {
    value.reset();
    if (next<bool>()) {
      read(value.emplace());
    }
  }
  template <typename Value>
  void read(std::shared_ptr<const Value>& value) {
    value = next<bool>() ? std::make_shared<const Value>(next<Value>()) : nullptr;
  }
  template <typename... Kinds>
  void read(std::variant<Kinds...>& value) {
    const auto index = next<std::uint8_t>();
    std::uint8_t kind = 0;
    good_ = good_ && index < sizeof...(Kinds);
    ((index == kind++ ? read(value.template emplace<Kinds>()) : void()), ...);
  }
  template <typename First, typename Second>
  void read(std::pair<First, Second>& value) {
    read(value.first);
    read(value.second);
  }
  template <List Values>
  void read(Values& values) {
    values.clear();
    for (auto left = next<std::uint64_t>(); left > 0 && good_; --left) {
      read(values.emplace_back());
    }
  }
  template <Map Values>
  void read(Values& values) {
    values.clear();
    for (auto left = next<std::uint64_t>(); left > 0 && good_; --left) {
      auto name = next<typename Values::key_type>();
      read(values[std::move(name)]);
    }
  }
  template <Record Value>
  void read(Value& value) {
    boost::pfr::for_each_field(value, [&](auto& member) { read(member); });
  }

  /// Everything made sense so far.
  bool good() const { return good_; }
  std::string_view rest() const { return bytes_; }
  /// The same, and there is more, or no more.
  bool more() const { return good_ && !bytes_.empty(); }
  bool complete() const { return good_ && bytes_.empty(); }

 private:
  template <typename Value>
  Value next() {
    Value value{};
    read(value);
    return value;
  }
  std::string_view take(std::uint64_t size) {
    good_ = good_ && size <= bytes_.size();
    const std::string_view taken = bytes_.substr(0, good_ ? size : 0);
    bytes_.remove_prefix(taken.size());
    return taken;
  }

  std::string_view bytes_;
  bool good_ = true;
};

void write_message(Writer& to, const queue::Message& message, const MessageFacts& facts) {
  to.write(message);
  to.write(facts);
}

/// Counts the bytes, and then writes them.
template <typename Value>
std::string packed(const Value& value) {
  Writer measure;
  measure.write(value);
  std::string bytes(measure.size(), '\0');
  Writer(bytes.data()).write(value);
  return bytes;
}

}  // namespace

Result<std::unique_ptr<SharedMemory>> SharedMemory::create(const char* name, std::size_t size) {
  Descriptor made(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const bool sized = made.open() && ::ftruncate(made.get(), static_cast<off_t>(size)) == 0 &&
                     ::fcntl(made.get(), F_ADD_SEALS, F_SEAL_SHRINK) == 0;
  char* const data = sized ? map(made.get(), size) : nullptr;
  if (data == nullptr) {
    return no_memory(size, errno);
  }
  return std::unique_ptr<SharedMemory>(new SharedMemory(std::move(made), data, size));
}

Result<std::unique_ptr<SharedMemory>> SharedMemory::attach(int descriptor) {
  const Descriptor given(descriptor);
  struct stat status {};
  const bool sized = ::fstat(descriptor, &status) == 0 && status.st_size > 0;
  char* const data = sized ? map(descriptor, static_cast<std::size_t>(status.st_size)) : nullptr;
  if (data == nullptr) {
    return no_memory(0, errno);
  }
  return std::unique_ptr<SharedMemory>(new SharedMemory(Descriptor(), data, static_cast<std::size_t>(status.st_size)));
}

Result<void> SharedMemory::grow(std::size_t size) {
  if (size <= size_) {
    return {};
  }
  if (::ftruncate(descriptor_.get(), static_cast<off_t>(size)) != 0) {
    return no_memory(size, errno);
  }
  return follow(size);
}

Result<void> SharedMemory::follow(std::size_t size) {
  if (size <= size_) {
    return {};
  }
  void* const moved = ::mremap(data_, size_, size, MREMAP_MAYMOVE);
  if (moved == MAP_FAILED) {
    return no_memory(size, errno);
  }
  data_ = static_cast<char*>(moved);
  size_ = size;
  return {};
}

void SharedMemory::forget_beyond(std::size_t kept) {
  if (size_ > kept) {
    ::fallocate(descriptor_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(kept),
                static_cast<off_t>(size_ - kept));
  }
}

void CheckpointAnswer::put(const queue::SettleResult& result) {
  status = result.status;
  code = result.error.code();
  reject = result.reject;
  text.assign(cut_utf8(result.error.message(), sizeof(text.bytes)));
}

queue::SettleResult CheckpointAnswer::get() const { return {status, Error(code, std::string(text.view())), reject}; }

bool EventRing::write(RunnerEvent kind, std::int16_t level, std::int64_t number, std::string_view text,
                      std::size_t message) noexcept {
  const EventHead head{static_cast<std::uint32_t>(std::min<std::size_t>(text.size(), kEventTextLimit)), kind, level,
                       number, message};
  const std::uint32_t size = sizeof(head) + padded(head.size);
  const std::uint32_t at = control_.produced.load(std::memory_order_relaxed);
  if (size > kRoom - (at - control_.consumed.load(std::memory_order_acquire))) {
    return false;
  }
  copy_in(control_, at, reinterpret_cast<const char*>(&head), sizeof(head));
  copy_in(control_, at + sizeof(head), text.data(), head.size);
  control_.produced.store(at + size, std::memory_order_release);
  control_.events.fetch_add(1);
  if (control_.host_sleeps.load() != 0) {
    futex_wake(control_.events);
  }
  return true;
}

void EventRing::wait_for_room() noexcept {
  const std::uint32_t seen = control_.consumed.load();
  control_.room_wanted.store(1);
  if (control_.produced.load() - seen > kRoom / 2) {
    futex_wait(control_.consumed, seen, kRoomLook);
  }
  control_.room_wanted.store(0);
}

EventRing::Found EventRing::read(EventHead& head, std::string& text) {
  const std::uint32_t at = control_.consumed.load(std::memory_order_relaxed);
  const std::uint32_t there = control_.produced.load(std::memory_order_acquire) - at;
  if (there == 0) {
    return Found::nothing;
  }
  if (there > kRoom || there < sizeof(head)) {
    return Found::nonsense;
  }
  copy_out(control_, at, reinterpret_cast<char*>(&head), sizeof(head));
  if (head.size > kEventTextLimit || sizeof(head) + padded(head.size) > there) {
    return Found::nonsense;
  }
  text.resize(head.size);
  copy_out(control_, at + sizeof(head), text.data(), head.size);
  control_.consumed.store(at + static_cast<std::uint32_t>(sizeof(head)) + padded(head.size));
  if (control_.room_wanted.load() != 0) {
    futex_wake(control_.consumed);
  }
  return Found::event;
}

std::string pack_setup(const RunnerSetup& setup) { return packed(setup); }

std::optional<RunnerSetup> unpack_setup(std::string_view bytes) {
  Reader from(bytes);
  RunnerSetup setup;
  from.read(setup);
  return from.complete() ? std::optional(std::move(setup)) : std::nullopt;
}

std::size_t packed_size(const queue::Message& message, const MessageFacts& facts) {
  Writer measure;
  write_message(measure, message, facts);
  return measure.size();
}

char* pack_message(const queue::Message& message, const MessageFacts& facts, char* bytes) {
  Writer writer(bytes);
  write_message(writer, message, facts);
  return bytes + writer.size();
}

bool unpack_message(std::string_view& bytes, WireMessage& into) {
  Reader from(bytes);
  from.read(into);
  bytes = from.rest();
  return from.good();
}

std::vector<std::string> pack_changes(const std::vector<plugin::MetricChange>& changes) {
  std::vector<std::string> pieces;
  for (const plugin::MetricChange& change : changes) {
    const std::string bytes = packed(change);
    if (pieces.empty() || pieces.back().size() + bytes.size() > kEventTextLimit) {
      pieces.emplace_back();
    }
    pieces.back() += bytes;
  }
  return pieces;
}

std::optional<std::vector<plugin::MetricChange>> unpack_changes(std::string_view bytes) {
  Reader from(bytes);
  std::vector<plugin::MetricChange> changes;
  while (from.more()) {
    from.read(changes.emplace_back());
  }
  return from.complete() ? std::optional(std::move(changes)) : std::nullopt;
}

std::string pack_effects(const queue::Effects& effects) { return packed(effects); }

std::shared_ptr<const queue::Effects> unpack_effects(std::string_view bytes) {
  auto effects = std::make_shared<queue::Effects>();
  Reader from(bytes);
  from.read(*effects);
  const bool few = effects->messages.size() + effects->writes.size() < queue::kMostEffects;
  return from.complete() && few ? effects : nullptr;
}

}  // namespace sluice::isolation
