#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/queue/notice_board.hpp"
#include "host/stores/sqlite/shared_store.hpp"

namespace sluice::queue::sqlite {

/// The notice board of one SQLite file: rows beside those of its messages. What hosts tell of themselves is not worth a
/// flush; what operators want and did is.
class SqliteBoard final : public NoticeBoard {
 public:
  /// `store` outlives the board.
  explicit SqliteBoard(SharedStore& store);

  const BoardTraits& traits() const override { return traits_; }
  WallTime now() const override { return store_.clock().wall_now(); }

  Result<Notice> read(Topic topic, const std::string& key, Deadline deadline) override;
  Result<std::vector<Notice>> list(Topic topic, Deadline deadline) override;
  Result<std::int64_t> post(Topic topic, const Notice& notice, Deadline deadline) override;
  Result<void> take_down(Topic topic, const std::string& key, std::int64_t version, Deadline deadline) override;
  std::unique_ptr<Watch> watch(std::function<void()> changed) override;

 private:
  Result<std::vector<Notice>> select(Topic topic, const std::optional<std::string>& key, Deadline deadline);
  /// Makes one change and returns the rows that it touched.
  Result<std::int64_t> change(Topic topic, std::function<std::int64_t(Connection&)> work, Deadline deadline);

  SharedStore& store_;
  const BoardTraits traits_;
};

}  // namespace sluice::queue::sqlite
