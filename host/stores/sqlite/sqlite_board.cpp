#include <optional>
#include <string_view>
#include <utility>

#include "host/stores/sqlite/roles.hpp"
#include "host/stores/sqlite/shared_store.hpp"

namespace sluice::queue::sqlite {

namespace {

constexpr std::size_t kMostBytes = std::size_t{256} * 1024;

/// Where the board is rung for; no queue has this name.
QueueAddress bell_address() { return {.queue = {}}; }

std::int64_t number_of(Topic topic) { return static_cast<std::int64_t>(topic); }

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

class SqliteBoard final : public NoticeBoard {
 public:
  explicit SqliteBoard(SharedStore& store)
      : store_(store),
        traits_{
            .place = store.path(), .tells = store.lock_file() != nullptr, .billed = false, .most_bytes = kMostBytes} {}

  const BoardTraits& traits() const override { return traits_; }
  WallTime now() const override { return store_.clock().wall_now(); }

  Result<Notice> read(Topic topic, const std::string& key, Deadline deadline) override {
    SLUICE_TRY(found, select(topic, key, deadline));
    return found->empty() ? Notice{.key = key} : std::move(found->front());
  }
  Result<std::vector<Notice>> list(Topic topic, Deadline deadline) override {
    return select(topic, topic == Topic::audit ? std::optional(std::string()) : std::nullopt, deadline);
  }

  Result<std::int64_t> post(Topic topic, const Notice& notice, Deadline deadline) override {
    if (notice.text.size() > kMostBytes) {
      return Error(ErrorCode::invalid, "a notice in " + traits_.place + " has at most " + std::to_string(kMostBytes) +
                                           " bytes, this one has " + std::to_string(notice.text.size()));
    }
    const auto put = [topic, notice, now = stored(now())](Writer& writer) {
      Statement write(*writer.connection,
                      notice.version == 0
                          ? "INSERT OR IGNORE INTO sluice_notices VALUES (?1, ?2, ?3 + 1, ?4, ?5)"
                          : "UPDATE sluice_notices SET version = version + 1, posted_at = ?4, text = ?5 "
                            "WHERE topic = ?1 AND key = ?2 AND version = ?3");
      return Change{
          write.bind(number_of(topic), std::string_view(notice.key), notice.version, now, Blob{notice.text}).run() > 0,
          false};
    };
    SLUICE_TRY(made, change(topic, notice.key, put, deadline));
    return made->touched ? Result<std::int64_t>(notice.version + 1) : changed_meanwhile();
  }

  Result<void> take_down(Topic topic, const std::string& key, std::int64_t version, Deadline deadline) override {
    const auto remove = [topic, key, version](Writer& writer) {
      Statement erase(*writer.connection, "DELETE FROM sluice_notices WHERE topic = ?1 AND key = ?2 AND version = ?3");
      const bool touched = erase.bind(number_of(topic), std::string_view(key), version).run() > 0;
      Statement find(*writer.connection, "SELECT 1 FROM sluice_notices WHERE topic = ?1 AND key = ?2");
      return Change{touched, find.bind(number_of(topic), std::string_view(key)).only().has_value()};
    };
    SLUICE_TRY(made, change(topic, key, remove, deadline));
    return made->left ? Result<void>(changed_meanwhile()) : Result<void>();
  }

  std::unique_ptr<Watch> watch(std::function<void()> changed) override {
    return traits_.tells ? std::make_unique<BoardWatch>(store_, std::move(changed)) : nullptr;
  }

 private:
  struct Change {
    bool touched = false;
    bool left = false;  ///< a notice of that key is there
  };

  Error changed_meanwhile() const {
    return {ErrorCode::conflict, "somebody else changed the notice in " + traits_.place + " meanwhile; read it again"};
  }

  Result<std::vector<Notice>> select(Topic topic, const std::optional<std::string>& key, Deadline deadline) {
    return store_.read<std::vector<Notice>>(
        [topic, key](RecordReader& reader) {
          Statement rows(
              reader.connection(),
              "SELECT key, text, version, posted_at FROM sluice_notices WHERE topic = ?1 AND key = coalesce(?2, key) "
              "ORDER BY key");
          std::vector<Notice> found;
          rows.bind(number_of(topic), key ? std::optional<std::string_view>(*key) : std::nullopt).each([&] {
            found.push_back({.key = std::string(rows.bytes(0)),
                             .text = std::string(rows.bytes(1)),
                             .version = rows.integer(2),
                             .posted_at = loaded(rows.integer(3))});
          });
          return found;
        },
        deadline);
  }

  Result<Change> change(Topic topic, std::string_view key, std::function<Change(Writer&)> work, Deadline deadline) {
    const auto ring = [topic, &doorbell = store_.doorbell()](const Change& made) {
      if (topic == Topic::steering && made.touched) {
        doorbell.ring(bell_address());
      }
    };
    // What hosts tell every few seconds anyway need not outlive a power cut.
    const bool is_told_again = topic == Topic::hosts || is_limit(topic, key);
    return store_.write<Change>({.work = std::move(work), .flush = !is_told_again, .committed = ring}, deadline);
  }

  SharedStore& store_;
  const BoardTraits traits_;
};

}  // namespace

std::unique_ptr<NoticeBoard> make_board(SharedStore& store) { return std::make_unique<SqliteBoard>(store); }

}  // namespace sluice::queue::sqlite
