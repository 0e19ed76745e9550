#include <yaml-cpp/yaml.h>

#include "base/ranges.hpp"
#include "host/cli/convert/fields.hpp"

namespace sluice::cli::convert {

namespace {

// Far beyond any configuration; an alias that holds itself, or aliases of aliases, end here.
constexpr std::size_t kMaxNodes = 20'000;
constexpr int kMaxYamlDepth = 32;

/// A file that is YAML and no configuration.
struct Unusable {
  std::string what;
};

std::string at_line(std::uint32_t line, const std::string& what) {
  return (line == 0 ? std::string() : "line " + std::to_string(line) + ": ") + what;
}

/// Its message may quote the text; the message of the parser alone does not.
std::string not_yaml(std::uint32_t line, const YAML::Exception& exception) {
  return at_line(line, "it is not YAML: " + exception.msg);
}

std::uint32_t line_of(const YAML::Mark& mark) { return mark.line < 0 ? 0 : static_cast<std::uint32_t>(mark.line) + 1; }

class TreeBuilder {
 public:
  TreeBuilder(const std::vector<Template>& templates, const config::Environment& environment)
      : templates_(templates), environment_(environment) {}

  YamlNode build(const YAML::Node& source, int depth) {
    const std::uint32_t line = place(source.Mark());
    if (depth > kMaxYamlDepth || ++nodes_ > kMaxNodes) {
      throw Unusable{at_line(line, "it is nested too deeply, or holds too much")};
    }
    YamlNode node;
    node.line = line;
    if (source.IsScalar()) {
      add_scalar(source, node, depth);
    } else if (source.IsSequence()) {
      node.kind = YamlNode::Kind::list;
      for (const auto& item : source) {
        node.items.push_back(build(item, depth + 1));
      }
    } else if (source.IsMap()) {
      node.kind = YamlNode::Kind::mapping;
      add_members(source, node, depth);
    }
    return node;
  }

 private:
  std::string now(const std::string& marked) const { return read_marks(marked, templates_, environment_).now; }
  std::uint32_t place(const YAML::Mark& mark) const { return of_variable_ != 0 ? of_variable_ : line_of(mark); }

  void add_scalar(const YAML::Node& source, YamlNode& node, int depth) {
    const std::string& marked = source.Scalar();
    const bool quoted = source.Tag() != "?";
    if (quoted || !has_marks(marked)) {
      node.kind = YamlNode::Kind::scalar;
      node.text = now(marked);
    } else {
      // Without quotes a variable may stand for nothing, or for more than a text.
      of_variable_ = node.line;
      try {
        node = build(YAML::Load(now(marked)), depth + 1);
      } catch (const YAML::Exception& exception) {
        throw Unusable{"with the variables of this environment: " + not_yaml(of_variable_, exception)};
      }
      of_variable_ = 0;
    }
    node.marked = marked;
  }

  void add_members(const YAML::Node& source, YamlNode& node, int depth) {
    std::vector<YamlNode> merged;
    for (const auto& member : source) {
      if (!member.first.IsScalar()) {
        throw Unusable{at_line(place(member.first.Mark()), "a key is no plain word")};
      }
      const std::string key = now(member.first.Scalar());
      YamlNode value = build(member.second, depth + 1);
      value.line = place(member.first.Mark());
      if (key == "<<") {
        merged.push_back(std::move(value));
      } else if (node.find(key) != nullptr) {
        throw Unusable{at_line(value.line, "a key stands there twice")};
      } else {
        node.members.push_back({key, std::move(value)});
      }
    }
    for (const YamlNode& other : merged) {
      merge(other, node);
    }
  }

  /// What stands in the mapping itself goes before what is merged into it.
  static void merge(const YamlNode& other, YamlNode& node) {
    for (const YamlNode& item : other.items) {
      merge(item, node);
    }
    for (const auto& [key, value] : other.members) {
      if (node.find(key) == nullptr) {
        node.members.push_back({key, value});
      }
    }
  }

  const std::vector<Template>& templates_;
  const config::Environment& environment_;
  std::size_t nodes_ = 0;
  std::uint32_t of_variable_ = 0;  ///< the line of the variable whose value is read; 0: the file itself is
};

}  // namespace

const YamlNode* YamlNode::find(const std::string& key) const {
  const auto* const found = find_where(members, [&key](const auto& member) { return member.key == key; });
  return found == nullptr ? nullptr : &found->value;
}

std::variant<YamlNode, std::string> parse_yaml(const MarkedText& marked, const config::Environment& environment) {
  try {
    return TreeBuilder(marked.templates, environment).build(YAML::Load(marked.text), 0);
  } catch (const Unusable& unusable) {
    return unusable.what;
  } catch (const YAML::Exception& exception) {
    return not_yaml(line_of(exception.mark), exception);
  }
}

}  // namespace sluice::cli::convert
