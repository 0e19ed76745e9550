#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "config/config.hpp"
#include "config/syntax.hpp"

namespace sluice::cli::convert {

/// A compose-style template.
using Template = config::Reference;

/// A text in which each template is a mark, so that a parser of YAML sees one plain word where it stands. A value.
struct MarkedText {
  std::string text;
  std::vector<Template> templates;  ///< the n-th is marked by its number
  std::string error;                ///< empty when all went well; says the line and never what stands there
};

/// Finds the templates of a text as compose-go v2 does: `$$` is a `$`, a `$` before anything else is itself.
MarkedText mark_templates(std::string_view text);

/// What a marked text comes to. A value.
struct Reading {
  std::string now;                   ///< with the variables of this environment, as outbox-worker has it when it starts
  std::vector<std::string> missing;  ///< variables that must be set and are not
  std::string ours;                  ///< in the syntax of our own files
  bool has_variables = false;
  std::vector<std::string> differences;  ///< where ours behaves otherwise, each a clause about one variable
  std::vector<std::string> unsayable;    ///< variables of forms that ours does not have
};

/// `needed`: in ours an unset variable is an error, as for fields that must not be blank.
Reading read_marks(std::string_view marked, const std::vector<Template>& templates,
                   const config::Environment& environment, bool needed = false);

/// True when the text holds a mark.
bool has_marks(std::string_view text);
/// The template that the text is a mark of, and nothing else; null where it is not so.
const Template* only_template(std::string_view text, const std::vector<Template>& templates);

struct YamlMember;

/// A node of a YAML document: nothing, a scalar, a list or a mapping. A value.
struct YamlNode {
  enum class Kind { nothing, scalar, list, mapping };
  Kind kind = Kind::nothing;  ///< with the variables of this environment, which may stand for a list too
  std::uint32_t line = 0;     ///< from 1
  std::string marked;         ///< of what stands there as a scalar: with its marks
  std::string text;           ///< of a scalar: with the variables of this environment
  std::vector<YamlNode> items;
  std::vector<YamlMember> members;  ///< in the order of the text

  /// The member of that name; null when there is none.
  const YamlNode* find(const std::string& key) const;
};

struct YamlMember {
  std::string key;
  YamlNode value;
};

/// Reads the first document of a marked text, aliases and merge keys resolved; otherwise what is wrong, which names
/// lines and never what stands there. The one boundary of yaml-cpp.
std::variant<YamlNode, std::string> parse_yaml(const MarkedText& marked, const config::Environment& environment);

/// What is wrong with fields, each by its path, in the format of outbox-worker's own validation:
/// "database: (password: cannot be blank; uri: cannot be blank.); outbox: is required."
class Complaints {
 public:
  /// The first about a field counts.
  void add(const std::string& path, const std::string& what);
  bool empty() const { return members_.empty(); }
  std::string text() const;

 private:
  std::string what_;
  std::map<std::string, Complaints> members_;
};

/// Something that the new files do not say, or say otherwise. A value.
struct Remark {
  std::uint32_t line = 0;
  std::string field;
  std::string what;
};

/// A value of the old file in the syntax of the new ones, without quotes.
struct Text {
  std::string text;
  bool has_variables = false;
};

struct NumberBounds {
  std::int64_t least = 0;
  std::int64_t most = 0;
  const char* complaint = "";  ///< beyond them
};

/// The fields of one file of outbox-worker, read by their paths ("database.tls.caFile"). What is never asked for is
/// unknown. Each read gives nothing when the field is absent or wrong; then there is a complaint. A field may be read
/// more than once: what is said of it stands there once.
class Fields {
 public:
  /// Reads the text; nothing and `error` when it is no YAML.
  static std::unique_ptr<Fields> read(const std::string& text, const config::Environment& environment,
                                      std::string& error);

  /// True when it stands there with a value.
  bool has(const std::string& path);
  /// A string, with its variables. `needed`: blank is a complaint.
  std::optional<Text> text(const std::string& path, bool needed = false);
  /// The same with the variables of this environment, for decisions; empty when absent.
  std::string meaning(const std::string& path);
  /// A plain value for which our files have no variables, as it is with those of this environment.
  std::optional<std::string> word(const std::string& path);
  std::optional<std::int64_t> number(const std::string& path, NumberBounds bounds);
  std::optional<double> fraction(const std::string& path);
  std::optional<bool> flag(const std::string& path);
  /// As Go writes it, "1m30s", or a whole number of nanoseconds.
  std::optional<config::Duration> duration(const std::string& path);
  /// As our files write it, with its variable where it is one; `fallback` is what outbox-worker takes in its place.
  std::optional<Text> duration_text(const std::string& path, config::Duration fallback);
  std::vector<Text> list(const std::string& path);
  /// The field is known and has no place in the new files.
  void leave_out(const std::string& path, const std::string& why);

  void remark(const std::string& path, const std::string& what);
  void complain(const std::string& path, const std::string& what) { complaints_.add(path, what); }
  const Complaints& complaints() const { return complaints_; }
  /// In the order of the text, with those about fields that nobody asked for.
  std::vector<Remark> take_remarks();

 private:
  Fields(std::vector<Template> templates, YamlNode tree, const config::Environment& environment)
      : templates_(std::move(templates)), tree_(std::move(tree)), environment_(environment) {}

  /// Null where nothing stands there, not even a variable.
  const YamlNode* find(const std::string& path);
  Text translated(const std::string& path, const YamlNode& node, bool needed);
  void note_unknown(const YamlNode& node, const std::string& path);

  const std::vector<Template> templates_;
  const YamlNode tree_;
  const config::Environment environment_;
  std::set<std::string> known_;
  Complaints complaints_;
  std::vector<Remark> remarks_;
};

/// "1m30s", "300ms", "1.5h" as Go reads them.
std::optional<config::Duration> parse_go_duration(std::string_view text);

}  // namespace sluice::cli::convert
