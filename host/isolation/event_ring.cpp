#include "host/isolation/event_ring.hpp"

#include <algorithm>

#include "host/isolation/futex.hpp"

namespace sluice::isolation {
namespace {

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

}  // namespace

bool EventWriter::write(RunnerEvent kind, std::int16_t level, std::int64_t number, std::string_view text) noexcept {
  const EventHead head{static_cast<std::uint32_t>(std::min<std::size_t>(text.size(), kEventTextLimit)), kind, level,
                       number};
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

void EventWriter::wait_for_room() noexcept {
  const std::uint32_t seen = control_.consumed.load();
  control_.room_wanted.store(1);
  if (control_.produced.load() - seen > kRoom / 2) {
    futex_wait(control_.consumed, seen, kRoomLook);
  }
  control_.room_wanted.store(0);
}

EventReader::Found EventReader::read(EventHead& head, std::string& text) {
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

}  // namespace sluice::isolation
