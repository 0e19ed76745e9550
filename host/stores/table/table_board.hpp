#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dynamo/client.hpp"
#include "host/queue/notice_board.hpp"
#include "host/stores/table/metadata_items.hpp"
#include "host/stores/table/store_parts.hpp"

namespace sluice::queue::table {

/// The notice board of one table: an item for each notice, and one that names the hosts' items, which no index finds.
/// A look at the steering costs half a read unit for each 4 KB, a post one write unit for each KB.
class TableBoard final : public NoticeBoard {
 public:
  /// What `parts` refer to outlives the board; `names` are those of the table's layout.
  TableBoard(const StoreParts& parts, QueueTable place, const LoneNames& names);

  const BoardTraits& traits() const override { return traits_; }
  WallTime now() const override { return parts_.clock.wall_now(); }

  Result<Notice> read(Topic topic, const std::string& key, Deadline deadline) override;
  Result<std::vector<Notice>> list(Topic topic, Deadline deadline) override;
  Result<std::int64_t> post(Topic topic, const Notice& notice, Deadline deadline) override;
  Result<void> take_down(Topic topic, const std::string& key, std::int64_t version, Deadline deadline) override;
  /// DynamoDB tells nobody.
  std::unique_ptr<Watch> watch(std::function<void()>) override { return nullptr; }

 private:
  enum class Roll { enter, strike };

  Result<dynamo::Item> item(const std::string& id, bool consistent, Deadline deadline) const;
  Result<std::vector<Notice>> roll_call(Deadline deadline) const;
  Result<void> change_roll(Roll change, const std::string& key, Deadline deadline) const;
  Error failure(const dynamo::Error& error) const;

  const StoreParts parts_;
  const QueueTable place_;
  const LoneNames names_;
  const BoardTraits traits_;
};

}  // namespace sluice::queue::table
