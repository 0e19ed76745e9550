#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "host/fleet/rate_share.hpp"
#include "host/queue/queues.hpp"
#include "host/runtime/job_set.hpp"

namespace sluice::runtime {

/// Leases this host's part of the limits that jobs share with all their hosts, on the boards of the jobs' queues, and
/// tells the jobs. For each such job a write every few seconds, and a read before it where other hosts have the job
/// too; it sleeps where no job has one.
class RateService final : public RepeatingService {
 public:
  struct Parts {
    queue::Queues& queues;
    const JobSet& jobs;
    observe::Log& log;
    const Clock& clock;
  };

  /// `host`: unique. What `parts` refer to outlives the service.
  RateService(const Parts& parts, std::string host)
      : RepeatingService("sluice-rates", parts.clock), parts_(parts), host_(std::move(host)) {}
  ~RateService() override { stop(); }

  /// There may be other jobs. Returns at once, from any thread.
  void look() { wake(); }

 private:
  /// Which limit, of so many messages a second: a notice's key, as several queues may be on one board, and have jobs of
  /// one name.
  using Name = std::pair<std::string, double>;
  /// A job's limit, and this host's part.
  struct Limit {
    fleet::RateShare share;
    std::unique_ptr<queue::NoticeBoard> board{};
    queue::Notice notice{};  ///< as it was read or posted last
    bool known = false;      ///< that is what stands there, as far as anybody knows
    std::weak_ptr<work::Job> job{};
    std::uint64_t claimed = 0;  ///< by the job when it was asked last
    SteadyTime asked{};
    bool troubled = false;  ///< the last try has failed
    SteadyTime retry_at = SteadyTime::min();

    SteadyTime due() const { return std::max(share.due(), retry_at); }
  };

  SteadyTime step(const std::stop_token& stop) override;
  /// Gives back what it has.
  void end() override;
  /// Brings the limits to the jobs that run now; false: the board of one cannot be opened.
  bool take_members();
  /// Those of boards that answered the last time first, and of the others one.
  void renew_due(const std::stop_token& stop);
  void renew(work::Job& job, Limit& limit);
  Result<void> post(work::Job& job, Limit& limit, const fleet::RateShare::Use& use);
  static Result<void> read(Limit& limit, Deadline deadline);
  static fleet::RateShare::Use use_of(const work::Job& job, Limit& limit, SteadyTime now);
  static void give_back(Limit& limit, Deadline deadline);

  const Parts parts_;
  const std::string host_;

  // Touched only by the thread.
  std::map<Name, Limit> limits_;
};

}  // namespace sluice::runtime
