#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace sluice::test {

/// A message as SNS has taken it.
struct PublishedMessage {
  std::string topic;  ///< ARN
  std::string body;
  std::string group;
  std::string deduplication;
  std::map<std::string, std::string> attributes;
};

/// Amazon SNS as far as publishers know it: PublishBatch, ListTopics and GetTopicAttributes of the query protocol, with
/// its checks, its limits and its refusals, and with faults when a test wants them. Every request's signature is
/// checked by signing it anew. Thread-safe; it speaks raw HTTP and leaves the sockets to others.
class SnsModel {
 public:
  static constexpr const char* kKey = "AKIDEXAMPLE";
  static constexpr const char* kSecret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

  /// The answer to one request, "HTTP/1.1 ..." and all; `head` holds its first line and headers.
  std::string answer(const std::string& head, const std::string& body);

  /// In "eu-west-1", of the account 123456789012; its ARN.
  std::string add_topic(const std::string& name, const std::string& region = "eu-west-1",
                        const std::string& account = "123456789012");
  void remove_topic(const std::string& arn);
  /// Its attributes may not be read.
  void hide_attributes(const std::string& arn);
  /// Pages of the list of topics have so many.
  void set_page_size(std::size_t size);

  /// The next requests fail as a whole, with this status and code; an empty code: with a page of a proxy's.
  void fail_requests(int count, int status, const std::string& code);
  /// Entries whose body holds this text fail so often in the batches they are in.
  void fail_entries(const std::string& text, int count, const std::string& code);
  /// A batch with such an entry fails as a whole.
  void refuse_batches_with(const std::string& text, const std::string& code);
  /// The key is good no longer; `key` is, with the same secret.
  void exchange_key(const std::string& key);
  /// What it thinks the time is, in seconds off this machine's clock.
  void set_clock(int seconds_ahead);

  int requests(const std::string& action) const;
  std::vector<PublishedMessage> messages() const;
  std::vector<std::size_t> batch_sizes() const;

 private:
  using Form = std::map<std::string, std::string>;

  struct Refusal {
    int status = 400;
    std::string code;
    std::string message;
  };
  struct EntryFault {
    std::string text;
    int left = 0;
    std::string code;
  };

  std::optional<Refusal> check_signature(const std::string& head, const std::string& body) const;
  std::optional<Refusal> planned_fault();
  std::string dispatch(const Form& form, const std::string& region);
  std::string publish_batch(const Form& form, const std::string& region);
  std::optional<Refusal> take_entry(const Form& form, const std::string& member, const std::string& topic);
  std::string list_topics(const Form& form, const std::string& region);
  std::string topic_attributes(const Form& form);
  std::string refuse(const Refusal& refusal) const;
  std::string http(int status, const std::string& body) const;

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::map<std::string, bool> topics_;  // ARN, and whether its attributes may be read
  std::size_t page_size_ = 100;
  std::string key_ = kKey;
  int seconds_ahead_ = 0;
  int failures_left_ = 0;
  Refusal failure_;
  std::vector<EntryFault> entry_faults_;
  std::map<std::string, std::string> refused_batches_;  // text, code
  std::map<std::string, int> requests_;
  std::vector<PublishedMessage> messages_;
  std::vector<std::size_t> batch_sizes_;
  std::set<std::string> deduplicated_;
};

}  // namespace sluice::test
