#include "directory.hpp"

#include <algorithm>
#include <utility>

#include "entry.hpp"
#include "publishing/text.hpp"

namespace sns {
namespace {

/// A server that gives pages for ever is left.
constexpr int kMostPages = 10'000;

bool fits(const std::vector<std::string>& patterns, const Topic& topic) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return publishing::matches(pattern, topic.arn) || publishing::matches(pattern, topic.name);
  });
}

}  // namespace

Directory::Directory(Service& service, DirectorySettings settings, const sluice::Clock& clock, sluice::Host host)
    : service_(service), settings_(std::move(settings)), clock_(clock), host_(host) {}

bool Directory::allows(const Topic& topic) const {
  return (settings_.allowed.empty() || fits(settings_.allowed, topic)) && !fits(settings_.denied, topic);
}

bool Directory::is_due(const std::string& name) const {
  if (fetching_) {
    return false;
  }
  const sluice::SteadyTime now = clock_.steady_now();
  return tried_at_ == sluice::SteadyTime{} || now >= tried_at_ + settings_.refetch ||
         (now >= tried_at_ + kShortest && (!known_ || named(name).empty()));
}

std::variant<Topic, Directory::Missing, Failure> Directory::find(const std::string& name, sluice::Deadline deadline) {
  if (service_.endpoints().region.empty()) {
    return Missing{"the topic \"" + publishing::one_line(name) +
                   "\" is known by name only, and no region is named; set region, or name the topic by its ARN"};
  }
  Lock lock(mutex_);
  if (is_due(name)) {
    fetch(lock, deadline);
  }
  fetched_.wait(lock, [&] { return known_ || !fetching_; });
  if (!known_) {
    return failure_;
  }
  const std::vector<std::string> arns = named(name);
  if (arns.size() > 1) {
    return Missing{"there are " + std::to_string(arns.size()) + " topics named \"" + name + "\": " + arns[0] + ", " +
                   arns[1] + "; name the topic by its ARN"};
  }
  if (arns.empty()) {
    return Missing{"there is no topic \"" + publishing::one_line(name) + "\" among the " +
                   std::to_string(topics_.size()) + " that may be published to in " + service_.endpoints().region};
  }
  if (!topics_[arns[0]].looked_at) {
    look_at(lock, arns[0], deadline);
  }
  const Known& known = topics_[arns[0]];
  if (!known.readable && !fits(settings_.unreadable, known.topic)) {
    return Missing{"the attributes of the topic " + arns[0] +
                   " cannot be read; give the role sns:GetTopicAttributes, or name it in ignore_unreadable_topics"};
  }
  return known.topic;
}

std::vector<std::string> Directory::named(const std::string& name) const {
  std::vector<std::string> arns;
  for (const auto& [arn, known] : topics_) {
    if (known.topic.name == name) {
      arns.push_back(arn);
    }
  }
  return arns;
}

void Directory::fetch(Lock& lock, sluice::Deadline deadline) {
  fetching_ = true;
  tried_at_ = clock_.steady_now();
  lock.unlock();
  auto listed = list(deadline);
  lock.lock();
  fetching_ = false;
  if (auto* topics = std::get_if<std::vector<Topic>>(&listed)) {
    known_ = true;
    topics_.clear();
    for (Topic& topic : *topics) {
      topics_[topic.arn] = {topic};
    }
  } else {
    failure_ = std::get<Failure>(std::move(listed));
    host_.warn("the topics of SNS cannot be listed: " + failure_.text());
  }
  fetched_.notify_all();
}

std::variant<std::vector<Topic>, Failure> Directory::list(sluice::Deadline deadline) {
  std::vector<Topic> topics;
  std::string token;
  for (int pages = 0; pages < kMostPages; ++pages) {
    const auto result = service_.call(service_.endpoints().region, list_topics_form(token), deadline);
    if (auto failure = read_failure(result)) {
      return std::move(*failure);
    }
    const auto page = read_topics(result->body);
    if (!page) {
      break;
    }
    for (const std::string& arn : page->arns) {
      auto topic = parse_topic_arn(arn);
      if (topic && allows(*topic)) {
        topics.push_back(std::move(*topic));
      }
    }
    if (page->next_token.empty()) {
      return topics;
    }
    token = page->next_token;
  }
  return Failure{"NoAnswer", "the list of topics cannot be read", true};
}

void Directory::look_at(Lock& lock, const std::string& arn, sluice::Deadline deadline) {
  lock.unlock();
  const auto result = service_.call(service_.endpoints().region, topic_attributes_form(arn), deadline);
  const auto failure = read_failure(result);
  const bool readable = !failure && read_attributes(result->body);
  if (!readable) {
    host_.warn("the attributes of the topic " + arn + " cannot be read" + (failure ? ": " + failure->text() : ""));
  }
  lock.lock();
  Known& known = topics_[arn];
  known.looked_at = readable || !failure || !failure->temporary;
  known.readable = readable;
  if (known.topic.arn.empty()) {
    known.topic = *parse_topic_arn(arn);  // the list was fetched anew meanwhile
  }
}

}  // namespace sns
