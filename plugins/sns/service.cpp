#include "service.hpp"

#include <algorithm>
#include <array>
#include <future>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "dynamo/codec/responses.hpp"
#include "dynamo/credentials/chain.hpp"
#include "dynamo/endpoints/endpoint_rules.hpp"
#include "dynamo/settings.hpp"
#include "dynamo/signing/uri.hpp"
#include "protocol.hpp"
#include "publishing/publishing.hpp"

namespace sns {

namespace {

using sluice::Deadline;
using sluice::dynamo::HttpResult;

constexpr int kTries = 3;

/// Whether whoever asks is refused, whatever is asked.
bool is_about_the_caller(std::string_view code) {
  constexpr std::array<std::string_view, 4> kCodes = {"InvalidClientTokenId", "SignatureDoesNotMatch",
                                                      "IncompleteSignature", "MissingAuthenticationToken"};
  return sluice::dynamo::says_expired(code) || std::find(kCodes.begin(), kCodes.end(), code) != kCodes.end();
}

sluice::dynamo::HttpRequest request_to(std::string url, std::string form) {
  sluice::dynamo::HttpRequest request;
  request.url = std::move(url);
  request.headers = {{"Content-Type", "application/x-www-form-urlencoded; charset=utf-8"}};
  request.body = std::move(form);
  return request;
}

/// A server that gives pages for ever is left.
constexpr int kMostPages = 10'000;

bool fits(const std::vector<std::string>& patterns, const Topic& topic) {
  return publishing::matches_any(patterns, topic.arn) || publishing::matches_any(patterns, topic.name);
}

}  // namespace

Reach::Reach(sluice::Host host, const Endpoints& endpoints)
    : host_(host),
      where_("SNS at " + (endpoints.endpoint.empty() && endpoints.region.empty() ? "the regions of its topics"
                                                                                 : endpoints.url(endpoints.region))) {
  show(true, where_ + ", not asked yet");
}

void Reach::told(const std::optional<Failure>& failure) {
  const bool fails = failure && (failure->unreachable || failure->temporary || is_about_the_caller(failure->code));
  // Any other refusal is an answer: of a topic or a message, not of SNS.
  show(!fails, fails ? where_ + ": " + failure->text() : where_ + " answers");
}

void Reach::show(bool works, std::string text) {
  const std::lock_guard lock(mutex_);
  if (std::pair now(works, std::move(text)); now != shown_) {
    shown_ = std::move(now);
    host_.health("broker", shown_.first, shown_.second);
  }
}

Endpoints endpoints_of(const sluice::Options& options, const sluice::dynamo::AwsEnvironment& environment) {
  if (options.has("endpoint") && !sluice::dynamo::parse_url(options.get("endpoint", ""))) {
    publishing::refuse("endpoint", "must be an address such as \"http://127.0.0.1:4566\"");
  }
  if (options.has("region") && !is_region(options.get("region", ""))) {
    publishing::refuse("region", "must be a region such as \"eu-west-1\"");
  }
  const auto profiles = sluice::dynamo::Profiles::load(environment);
  if (!profiles) {
    throw std::invalid_argument(profiles.error().message);
  }
  const auto usual = sluice::dynamo::resolve_settings(environment, *profiles);
  if (!usual) {
    throw std::invalid_argument(usual.error().message);
  }
  Endpoints endpoints{*usual};
  endpoints.region = options.get<std::string>("region", usual->region);
  endpoints.endpoint = options.has("endpoint")
                           ? options.get("endpoint", "")
                           : sluice::dynamo::configured_endpoint(environment, *profiles, "sns").value_or("");
  if (!endpoints.region.empty() && !is_region(endpoints.region)) {
    throw std::invalid_argument("the region \"" + endpoints.region + "\" is not the name of one");
  }
  return endpoints;
}

std::string Endpoints::url(const std::string& of_region) const {
  return endpoint.empty() ? sluice::dynamo::service_url("sns", *this, of_region) : endpoint;
}

Service::Service(Endpoints endpoints, sluice::dynamo::HttpTransport& transport,
                 sluice::dynamo::CredentialsProvider& credentials, const sluice::Clock& clock, Reach& reach)
    : endpoints_(std::move(endpoints)),
      transport_(transport),
      credentials_(credentials),
      clock_(clock),
      reach_(reach) {}

const sluice::dynamo::Signer& Service::signer(const std::string& region) {
  const std::lock_guard lock(mutex_);
  auto& found = signers_[region];
  if (!found) {
    found =
        std::make_unique<sluice::dynamo::Signer>(sluice::dynamo::SigningOptions{.region = region, .service = "sns"});
  }
  return *found;
}

void Service::send(const std::string& region, std::string form, Deadline deadline, Callback done) {
  auto credentials = credentials_.get(deadline);
  if (!credentials) {
    reach_.told(read_failure(credentials.error()));
    done(credentials.error(), false);
    return;
  }
  auto request = request_to(endpoints_.url(region), std::move(form));
  const sluice::WallTime signed_at = skew_.corrected(clock_.wall_now());
  if (auto failure = signer(region).sign(request, *credentials, signed_at)) {
    done(*failure, false);
    return;
  }
  request.headers.emplace_back("User-Agent", "sluice-sns/1.0.0");
  transport_.send(std::move(request), deadline,
                  [this, used = std::move(*credentials), signed_at, done = std::move(done)](const HttpResult& result) {
                    const auto failure = read_failure(result);
                    reach_.told(failure);
                    done(result, mended(result, failure, used, signed_at));
                  });
}

bool Service::mended(const HttpResult& result, const std::optional<Failure>& failure,
                     const sluice::dynamo::Credentials& used, sluice::WallTime signed_at) {
  if (!result || !failure) {
    return false;
  }
  if (sluice::dynamo::says_expired(failure->code)) {
    credentials_.refused(used);
    return true;
  }
  sluice::dynamo::Error refusal;
  refusal.exception_name = failure->code;
  const std::string* date = result->header("date");
  return date != nullptr && skew_.learn(refusal, *date, clock_.wall_now(), signed_at);
}

HttpResult Service::call(const std::string& region, const std::string& form, Deadline deadline) {
  for (int tries = 1;; ++tries) {
    const auto answer = std::make_shared<std::promise<std::pair<HttpResult, bool>>>();
    send(region, form, deadline, [answer](const HttpResult& result, bool mended) {
      answer->set_value({result, mended});
    });
    auto [result, mended] = answer->get_future().get();
    const auto failure = read_failure(result);
    const bool again = failure && (mended || (failure->temporary && !failure->unreachable));
    if (!again || tries >= kTries || deadline.passed(clock_.steady_now())) {
      return result;
    }
  }
}

std::unique_ptr<sluice::dynamo::CredentialsProvider> credentials_of(const sluice::Options& options,
                                                                    const sluice::dynamo::AwsEnvironment& environment,
                                                                    sluice::dynamo::HttpTransport& transport,
                                                                    const sluice::Clock& clock,
                                                                    sluice::Random& random) {
  if (options.has("access_key_id") != options.has("secret_access_key")) {
    publishing::refuse("access_key_id", "and \"secret_access_key\" belong together; set both, or neither");
  }
  if (options.get("access_key_id", "").empty()) {
    return sluice::dynamo::make_default_chain(environment, options.get("region", ""), transport, clock, random);
  }
  return sluice::dynamo::make_static_credentials({.access_key_id = options.get("access_key_id", ""),
                                                  .secret_access_key = options.get("secret_access_key", ""),
                                                  .session_token = options.get("session_token", ""),
                                                  .source = "the job's options"},
                                                 clock, random);
}

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
         (now >= tried_at_ + kShortest && !topics_.contains(name));
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
  const auto [first, last] = topics_.equal_range(name);
  if (const auto count = std::distance(first, last); count > 1) {
    return Missing{"there are " + std::to_string(count) + " topics named \"" + name + "\": " + first->second.topic.arn +
                   ", " + std::next(first)->second.topic.arn + "; name the topic by its ARN"};
  }
  if (first == last) {
    return Missing{"there is no topic \"" + publishing::one_line(name) + "\" among the " +
                   std::to_string(topics_.size()) + " that may be published to in " + service_.endpoints().region};
  }
  const Known known = first->second;
  if (!(known.readable ? *known.readable : look_at(lock, known.topic, deadline)) &&
      !fits(settings_.unreadable, known.topic)) {
    return Missing{"the attributes of the topic " + known.topic.arn +
                   " cannot be read; give the role sns:GetTopicAttributes, or name it in ignore_unreadable_topics"};
  }
  return known.topic;
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
      topics_.emplace(topic.name, Known{topic});
    }
  } else {
    failure_ = std::get<Failure>(std::move(listed));
    host_.warn("the topics of SNS cannot be listed: " + failure_.text());
  }
  fetched_.notify_all();
}

std::variant<std::vector<Topic>, Failure> Directory::list(sluice::Deadline deadline) {
  std::vector<Topic> topics;
  std::set<std::string> seen;  // the list may change between two pages
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
      if (topic && allows(*topic) && seen.insert(arn).second) {
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

bool Directory::look_at(Lock& lock, const Topic& topic, sluice::Deadline deadline) {
  lock.unlock();
  const auto result = service_.call(service_.endpoints().region, topic_attributes_form(topic.arn), deadline);
  const auto failure = read_failure(result);
  const bool readable = !failure && tells_attributes(result->body);
  if (!readable) {
    host_.warn("the attributes of the topic " + topic.arn + " cannot be read" +
               (failure ? ": " + failure->text() : ""));
  }
  lock.lock();
  // It is asked for again where it may have been the moment's fault, or the list was fetched anew meanwhile.
  const auto known = topics_.find(topic.name);
  if (known != topics_.end() && known->second.topic.arn == topic.arn && !(failure && failure->temporary)) {
    known->second.readable = readable;
  }
  return readable;
}

}  // namespace sns
