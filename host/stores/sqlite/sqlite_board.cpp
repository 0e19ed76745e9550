#include "host/stores/sqlite/sqlite_board.hpp"

#include <string_view>
#include <utility>

#include "host/stores/sqlite/bell_watch.hpp"
#include "host/stores/sqlite/times.hpp"

namespace sluice::queue::sqlite {

namespace {

constexpr std::size_t kMostBytes = std::size_t{256} * 1024;

/// Where the board is rung for; no queue has this name.
QueueAddress bell_address() { return {.queue = {}}; }

std::int64_t number_of(Topic topic) { return static_cast<std::int64_t>(topic); }

Error changed_meanwhile(const BoardTraits& traits) {
  return {ErrorCode::conflict, "somebody else changed the notice in " + traits.place + " meanwhile; read it again"};
}

/// Listens as long as it lives. Each ring is waited for anew, as nothing is claimed in between.
class BoardWatch final : public NoticeBoard::Watch {
 public:
  BoardWatch(SharedStore& store, std::function<void()> changed)
      : changed_(std::move(changed)), watch_(store.lock_file(), bell_address(), [this] { rung(); }) {}

 private:
  void rung() {
    // What rings while this is told is told once more: it may have been looked for too early.
    const std::uint64_t heard = watch_.heard();
    changed_();
    watch_.arm(heard);
  }

  const std::function<void()> changed_;
  // Last, so that nothing is called any more when the rest goes.
  BellWatch watch_;
};

}  // namespace

SqliteBoard::SqliteBoard(SharedStore& store)
    : store_(store),
      traits_{.place = store.path(), .tells = store.lock_file() != nullptr, .billed = false, .most_bytes = kMostBytes} {
}

Result<Notice> SqliteBoard::read(Topic topic, const std::string& key, Deadline deadline) {
  SLUICE_TRY(found, select(topic, key, deadline));
  return found->empty() ? Notice{.key = key} : std::move(found->front());
}

Result<std::vector<Notice>> SqliteBoard::list(Topic topic, Deadline deadline) {
  return select(topic, std::nullopt, deadline);
}

Result<std::vector<Notice>> SqliteBoard::select(Topic topic, const std::optional<std::string>& key, Deadline deadline) {
  // The call's and the store's together, for the caller may leave before the disk answers.
  const auto found = std::make_shared<std::vector<Notice>>();
  SLUICE_PASS_ON(store_.read(
      [found, topic, key](RecordReader& reader) {
        Statement rows(
            reader.connection(),
            "SELECT key, text, version, posted_at FROM sluice_notices WHERE topic = ?1 AND key = coalesce(?2, key) "
            "ORDER BY key");
        rows.bind(number_of(topic), key ? std::optional<std::string_view>(*key) : std::nullopt);
        while (rows.row()) {
          found->push_back({.key = std::string(rows.bytes(0)),
                            .text = std::string(rows.bytes(1)),
                            .version = rows.integer(2),
                            .posted_at = loaded(rows.integer(3))});
        }
        rows.reset();
      },
      deadline));
  return std::move(*found);
}

Result<std::int64_t> SqliteBoard::change(Topic topic, std::function<std::int64_t(Connection&)> work,
                                         Deadline deadline) {
  const auto touched = std::make_shared<std::int64_t>(0);
  const auto ring = [touched, topic, &doorbell = store_.doorbell()] {
    if (topic == Topic::steering && *touched > 0) {
      doorbell.ring(bell_address());
    }
  };
  auto done =
      store_.write({.work = [touched, work = std::move(work)](Writer& writer) { *touched = work(*writer.connection); },
                    .flush = topic != Topic::hosts,
                    .committed = ring},
                   deadline);
  SLUICE_PASS_ON(done);
  return *touched;
}

Result<std::int64_t> SqliteBoard::post(Topic topic, const Notice& notice, Deadline deadline) {
  if (notice.text.size() > kMostBytes) {
    return Error(ErrorCode::invalid, "a notice in " + traits_.place + " has at most " + std::to_string(kMostBytes) +
                                         " bytes, this one has " + std::to_string(notice.text.size()));
  }
  const auto put = [topic, notice, now = stored(now())](Connection& connection) {
    if (notice.version == 0) {
      Statement insert(connection, "INSERT OR IGNORE INTO sluice_notices VALUES (?1, ?2, 1, ?3, ?4)");
      return insert.bind(number_of(topic), std::string_view(notice.key), now, Blob{notice.text}).run();
    }
    Statement update(connection,
                     "UPDATE sluice_notices SET version = version + 1, posted_at = ?4, text = ?5 "
                     "WHERE topic = ?1 AND key = ?2 AND version = ?3");
    return update.bind(number_of(topic), std::string_view(notice.key), notice.version, now, Blob{notice.text}).run();
  };
  SLUICE_TRY(touched, change(topic, put, deadline));
  if (*touched == 0) {
    return changed_meanwhile(traits_);
  }
  return notice.version + 1;
}

Result<void> SqliteBoard::take_down(Topic topic, const std::string& key, std::int64_t version, Deadline deadline) {
  const auto left = std::make_shared<bool>(false);
  const auto remove = [topic, key, version, left](Connection& connection) {
    Statement erase(connection, "DELETE FROM sluice_notices WHERE topic = ?1 AND key = ?2 AND version = ?3");
    const std::int64_t touched = erase.bind(number_of(topic), std::string_view(key), version).run();
    Statement find(connection, "SELECT 1 FROM sluice_notices WHERE topic = ?1 AND key = ?2");
    *left = find.bind(number_of(topic), std::string_view(key)).row();
    find.reset();
    return touched;
  };
  SLUICE_PASS_ON(change(topic, remove, deadline));
  return *left ? Result<void>(changed_meanwhile(traits_)) : Result<void>();
}

std::unique_ptr<NoticeBoard::Watch> SqliteBoard::watch(std::function<void()> changed) {
  return traits_.tells ? std::make_unique<BoardWatch>(store_, std::move(changed)) : nullptr;
}

}  // namespace sluice::queue::sqlite
