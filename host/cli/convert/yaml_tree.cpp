#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "host/cli/convert/fields.hpp"

namespace sluice::cli::convert {

namespace {

// Far beyond any configuration; an alias that holds itself, or aliases of aliases, end here.
constexpr std::size_t kMaxNodes = 20'000;
constexpr int kMaxYamlDepth = 32;

/// A file that is YAML and no configuration.
struct Unusable {
  YamlError error;
};

std::uint32_t line_of(const YAML::Mark& mark) { return mark.line < 0 ? 0 : static_cast<std::uint32_t>(mark.line) + 1; }

class TreeBuilder {
 public:
  YamlNode build(const YAML::Node& source, int depth) {
    const std::uint32_t line = line_of(source.Mark());
    if (depth > kMaxYamlDepth || ++nodes_ > kMaxNodes) {
      throw Unusable{{line, "it is nested too deeply, or holds too much"}};
    }
    YamlNode node;
    node.line = line;
    if (source.IsScalar()) {
      node.kind = YamlNode::Kind::scalar;
      node.text = source.Scalar();
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
  void add_members(const YAML::Node& source, YamlNode& node, int depth) {
    std::vector<YamlNode> merged;
    for (const auto& member : source) {
      if (!member.first.IsScalar()) {
        throw Unusable{{line_of(member.first.Mark()), "a key is no plain word"}};
      }
      const std::string key = member.first.Scalar();
      YamlNode value = build(member.second, depth + 1);
      value.line = line_of(member.first.Mark());
      if (key == "<<") {
        merged.push_back(std::move(value));
      } else if (node.find(key) != nullptr) {
        throw Unusable{{value.line, "a key stands there twice"}};
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

  std::size_t nodes_ = 0;
};

}  // namespace

const YamlNode* YamlNode::find(const std::string& key) const {
  const auto found =
      std::find_if(members.begin(), members.end(), [&key](const auto& member) { return member.key == key; });
  return found == members.end() ? nullptr : &found->value;
}

std::variant<YamlNode, YamlError> parse_yaml(const std::string& text) {
  try {
    return TreeBuilder().build(YAML::Load(text), 0);
  } catch (const Unusable& unusable) {
    return unusable.error;
  } catch (const YAML::Exception& exception) {
    // Its message may quote the text; the message of the parser alone does not.
    return YamlError{line_of(exception.mark), "it is not YAML: " + exception.msg};
  }
}

}  // namespace sluice::cli::convert
