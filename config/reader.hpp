#pragma once

#include <boost/core/noncopyable.hpp>
#include <deque>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/ranges.hpp"
#include "config/config.hpp"
#include "config/document.hpp"
#include "config/words.hpp"

namespace sluice::config {

class Reader;

/// An integer or a floating-point number, or text of one out of the environment.
std::optional<double> number_of(const Value& value);

/// Answers what a string must be, or nothing when it is that.
using Complaint = const char* (*)(const std::string& text);

/// Of a text that may be any, or is checked by who reads it.
const char* any_complaint(const std::string& text);

struct DurationBounds {
  Duration least;
  Duration most;
};

/// What a number must be, and how an error says so.
struct NumberRule {
  bool (*is_met)(double number);
  const char* said;
};
inline constexpr double kMostAmount = 1e9;
inline constexpr NumberRule kShare{[](double number) { return number >= 0 && number <= 1; }, "from 0 to 1"};
inline constexpr NumberRule kAmount{[](double number) { return number >= 0 && number <= kMostAmount; }, "from 0 on"};
inline constexpr NumberRule kLimit{[](double number) { return number > 0 && number <= kMostAmount; }, "above 0"};

/// What is known of a table.
struct KnownTable {
  std::string path;  ///< "job.retry"; empty for the root
  Place place;
  const Table* table;  ///< nullptr: it is absent
  std::vector<std::string> keys;
};

/// One table of a file, which may be absent. Reading a key makes it known; what is never asked for is an error in the
/// end. Each `read` leaves `target` alone when the key is absent or wrong (then the Reader has the error). A light
/// handle on its Reader.
class Section {
 public:
  /// "[job.retry]", or "the file" for the root: as errors call it.
  std::string title() const;
  bool present() const { return known_->table != nullptr; }
  /// Of the table; the file as a whole when it is absent.
  Place place() const;

  /// The member of that name, which is known from now on; nullptr when absent.
  const Member* find(const std::string& key);
  /// The same where its value is a text; nullptr otherwise.
  const std::string* text(const std::string& key);
  /// As find, and an error saying what is missing when absent.
  const Member* require(const std::string& key, const std::string& mend);
  /// The same, and reads it; the place of its value.
  Place require(const std::string& key, const std::string& mend, std::string& target, Complaint complaint);

  void read(const std::string& key, std::string& target, Complaint complaint, bool shown = true);
  void read(const std::string& key, std::uint32_t& target, std::uint32_t least, std::uint32_t most);
  void read(const std::string& key, Duration& target, DurationBounds bounds);
  void read(const std::string& key, std::vector<std::string>& target, Complaint complaint);
  void read(const std::string& key, bool& target);
  /// A table of strings; no value of it appears in an error.
  /// `plain`: names that are not empty, and no control characters in them and their values.
  void read(const std::string& key, std::map<std::string, std::string>& target, bool plain = true);
  /// A number, also as text out of the environment; `example` goes into the error.
  void read(const std::string& key, double& target, const NumberRule& rule, const std::string& example);
  /// A day of the calendar, as a TOML date or as text of that form.
  void read_day(const std::string& key, std::string& target);
  /// A text that no error shows.
  void read_secret(const std::string& key, std::string& target, Complaint complaint) {
    read(key, target, complaint, false);
  }
  /// A path, which is seen from the folder of the file: what is there without the key, too.
  void read_path(const std::string& key, std::string& target);
  /// An address. One that names a user is no good here, and as it may name his password too, no error shows it.
  void read_url(const std::string& key, std::string& target, Complaint complaint);
  /// A word of a setting. True when the key is there and good.
  template <typename Setting>
  requires std::is_enum_v<Setting>
  bool read(const std::string& key, Setting& target) {
    const std::vector<std::string> words = words_of<Setting>();
    const std::size_t chosen = choose(key, words);
    return chosen < words.size() && boost::describe::enum_from_string(words[chosen].c_str(), target);
  }
  /// Which of the words it is; beyond them when it is absent or wrong.
  std::size_t choose(const std::string& key, const std::vector<std::string>& words);

  /// The tables of a list in this one, written as [[key]]; none when it is absent.
  std::vector<Section> sections(const std::string& key, std::size_t most);
  /// The table inside this one; `below` is ".NAME" where it holds nothing but tables.
  Section section(const std::string& key, const std::string& below = {});

  /// Its members, be they known or not; none when it is absent.
  const Table& members() const;

  /// An error about a key that is there: "'key' in [section] " and the text, at the place of its value.
  void error_at_value(const std::string& key, const std::string& text);
  /// The same at the place of each of the keys that is there.
  void refuse(std::initializer_list<const char*> keys, const std::string& text);
  /// An error about the table: its title and the text.
  void error_here(const std::string& text);
  void error(const Place& place, std::string text);
  /// An error where the key of a member is no name; `whose`: "a queue's".
  void check_name(const Member& member, const std::string& whose);

 private:
  friend class Reader;
  Section(Reader& reader, KnownTable& known) : reader_(&reader), known_(&known) {}

  /// "'key' in [section] ": how an error about a key of this table begins.
  std::string naming(const std::string& key) const;
  /// Nothing where the key is absent or has its error already.
  const Value* find_sound(const std::string& key);
  /// The same where it is of this type; of another one it is an error.
  template <typename Content>
  const Content* find_content(const std::string& key, const std::string& expected);
  void wrong_type(const std::string& key, const Value& value, const std::string& expected);

  Reader* reader_;
  KnownTable* known_;
};

/// Reads one file's tree strictly and collects what is wrong with it. `document` outlives it.
class Reader : boost::noncopyable {
 public:
  Reader(const Document& document, std::string file);

  Section root();
  void error(const Place& place, std::string message);
  /// Every error in the order of the text, keys that nobody asked for among them. To be called once, in the end.
  std::vector<ConfigError> finish();

 private:
  friend class Section;

  Section add(std::string path, Place place, const Table* table);
  std::string unknown(const KnownTable& section, const std::string& key) const;

  std::string file_;
  std::deque<KnownTable> sections_;  // which stay where they are
  std::vector<ConfigError> errors_;
};

/// The names of such tables.
template <typename Named>
std::vector<std::string> names_of(const std::map<std::string, Named>& all) {
  return mapped(all, [](const auto& one) { return one.first; });
}

/// What an HTTP header may carry, and not nothing.
const char* token_complaint(const std::string& text);
/// At most 255 bytes without control characters.
const char* label_complaint(const std::string& text);

/// "http://" or "https://", a host and perhaps a port; `path`: and perhaps a path. Without user, query and fragment.
bool is_http_url(std::string_view text, bool path);

/// The tables [outbox.NAME] of a host file.
void read_outboxes(Section outboxes, HostConfig& config);

/// A job's `source` where it is "outbox:NAME": true, and the queue's name and the job's other defaults are set.
/// False: it is something else, or is not there.
bool read_outbox_source(Section job, JobConfig& config);

/// [job.outbox], and what else of an outbox's job only shows when all of its file has been read.
void read_outbox_filter(Section job, JobConfig& config);

/// What jobs with an outbox and the host file say of each other: an error for each that does not fit, and limits that
/// the jobs leave to the outbox.
std::vector<ConfigError> join_outboxes(std::vector<JobConfig>& jobs, const HostConfig& host);

}  // namespace sluice::config
