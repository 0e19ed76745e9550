#include "host/operate/known_names.hpp"

#include <algorithm>
#include <utility>

#include "config/config.hpp"

namespace sluice::operate {
namespace {

using Words = std::vector<std::string>;

template <typename T>
void add_once(std::vector<T>& all, T one) {
  if (std::find(all.begin(), all.end(), one) == all.end()) {
    all.push_back(std::move(one));
  }
}

bool has(const Words& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string listed(const Words& words) {
  constexpr std::size_t kMost = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(words.size(), kMost); ++i) {
    text += (i == 0 ? "" : ", ") + words[i];
  }
  return text + (words.size() > kMost ? ", ..." : "");
}

/// "there is no job \"maler\"; did you mean \"mailer\"?"
Error unknown(const std::string& what, const std::string& word, const Words& known) {
  const auto meant = config::nearest(word, known);
  return Error(ErrorCode::not_found, "there is no " + what + " \"" + word + "\"" +
                                         (meant           ? "; did you mean \"" + *meant + "\"?"
                                          : known.empty() ? "; none is known here"
                                                          : "; there are " + listed(known)));
}

fleet::Directive directive(fleet::Wish wish, fleet::Target target, const std::string& name) {
  fleet::Directive made;
  made.wish = wish;
  made.target = target;
  made.name = name;
  return made;
}

}  // namespace

void KnownNames::add_queue(const std::string& queue) { add_once(queues_, queue); }

void KnownNames::add_job(NamedJob job) {
  for (const std::string& queue : fleet::queues_in(job.queue)) {
    add_queue(queue);
  }
  add_once(jobs_, std::move(job));
}

void KnownNames::add(const fleet::FleetView& view) {
  for (const fleet::KnownHost& host : view.hosts) {
    add_once(labels_, host.record.label());
    for (const std::string& word : {host.record.name, host.record.label(), host.record.instance}) {
      add_once(host_words_, word);
    }
    for (const fleet::JobRecord& job : host.record.jobs) {
      add_job({job.name, job.queue});
    }
  }
}

void KnownNames::add(const fleet::SteeringView& view) {
  for (const fleet::Given& given : view.given) {
    if (given.directive.target == fleet::Target::queue) {
      add_queue(given.directive.name);
    } else if (given.directive.target == fleet::Target::job && !has_job(given.directive.name)) {
      jobs_.push_back({given.directive.name, {}});
    }
  }
}

bool KnownNames::has_queue(const std::string& word) const { return has(queues_, word); }

bool KnownNames::has_job(const std::string& word) const { return has(job_names(), word); }

Words KnownNames::job_names() const {
  Words names;
  for (const NamedJob& job : jobs_) {
    add_once(names, job.name);
  }
  return names;
}

Result<fleet::Directive> KnownNames::queue(fleet::Wish wish, const std::string& word) const {
  if (!has_queue(word)) {
    return unknown("queue", word, queues_);
  }
  return directive(wish, fleet::Target::queue, word);
}

Result<fleet::Directive> KnownNames::job(fleet::Wish wish, const std::string& word) const {
  if (!has_job(word)) {
    return unknown("job", word, job_names());
  }
  return directive(wish, fleet::Target::job, word);
}

Result<fleet::Directive> KnownNames::thing(fleet::Wish wish, const std::string& word) const {
  const bool as_queue = has_queue(word);
  const bool as_job = has_job(word);
  if (as_queue && as_job) {
    const bool same = std::all_of(jobs_.begin(), jobs_.end(),
                                  [&word](const NamedJob& job) { return (job.name == word) == (job.queue == word); });
    if (!same) {
      return Error(ErrorCode::conflict, "\"" + word +
                                            "\" is a job and a queue that is not that job's alone; write --job " +
                                            word + " or --queue " + word);
    }
    return directive(wish, fleet::Target::queue, word);
  }
  if (as_queue) {
    return directive(wish, fleet::Target::queue, word);
  }
  if (as_job) {
    return directive(wish, fleet::Target::job, word);
  }
  Words known = job_names();
  for (const std::string& queue : queues_) {
    add_once(known, queue);
  }
  return unknown("job or queue", word, known);
}

Result<fleet::Directive> KnownNames::host(fleet::Wish wish, const std::string& word) const {
  if (!has(host_words_, word)) {
    Words known = labels_;
    for (const std::string& label : labels_) {
      add_once(known, label.substr(0, label.rfind(':')));
    }
    return unknown("host", word, known);
  }
  return directive(wish, fleet::Target::host, word);
}

std::string KnownNames::queue_of_job(const std::string& name) const {
  Words found;
  for (const NamedJob& job : jobs_) {
    if (job.name == name) {
      add_once(found, job.queue);
    }
  }
  return found.size() == 1 ? found.front() : std::string();
}

}  // namespace sluice::operate
