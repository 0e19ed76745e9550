#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "host/fleet/fleet.hpp"

namespace sluice::operate {

/// A job by its name, and where it works.
struct NamedJob {
  std::string name;
  std::string queue;

  friend bool operator==(const NamedJob&, const NamedJob&) = default;
};

/// What an operator may mean by a name: what the files here say, what hosts tell of themselves, and what is steered
/// already. A value.
class KnownNames {
 public:
  void add_queue(const std::string& queue);
  void add_job(NamedJob job);
  void add(const fleet::FleetView& view);
  void add(const fleet::SteeringView& view);

  const std::vector<std::string>& queues() const { return queues_; }
  /// One name may stand for jobs of several queues.
  const std::vector<NamedJob>& jobs() const { return jobs_; }
  /// Labels, "name:pid".
  const std::vector<std::string>& hosts() const { return labels_; }

  /// A job or queue. `not_found`, with the name that was probably meant, where there is none; `conflict` for a name
  /// that means both, unless the job is all that works on the queue: then the queue is meant.
  Result<fleet::Directive> thing(fleet::Wish wish, const std::string& word) const;
  Result<fleet::Directive> queue(fleet::Wish wish, const std::string& word) const;
  Result<fleet::Directive> job(fleet::Wish wish, const std::string& word) const;
  /// A host by its name, label or instance.
  Result<fleet::Directive> host(fleet::Wish wish, const std::string& word) const;

  /// The queue that a job works on; empty where several have its name or nobody knows it.
  std::string queue_of_job(const std::string& name) const;

 private:
  bool has_queue(const std::string& word) const;
  bool has_job(const std::string& word) const;
  std::vector<std::string> job_names() const;

  std::vector<std::string> queues_;
  std::vector<NamedJob> jobs_;
  std::vector<std::string> labels_;
  std::vector<std::string> host_words_;  ///< names, labels and instances
};

}  // namespace sluice::operate
