#include <algorithm>
#include <map>
#include <utility>

#include "tests/support/dynamodb_model/evaluate.hpp"
#include "tests/support/dynamodb_model/failure.hpp"
#include "tests/support/dynamodb_model/numbers.hpp"

namespace sluice::test::model {
namespace {

Failure bad_path() { return validation("The document path provided in the update expression is invalid for update"); }

// One change, with its value computed against the item as it was; no value: the path is removed.
struct PathChange {
  const Path* path;
  std::optional<AttributeValue> value;
};

std::string text_of(const Path& path, const Bindings& bindings) {
  std::string out;
  for (const PathStep& step : path) {
    out += out.empty() ? "" : ", ";
    out += step.index >= 0 ? "[" + std::to_string(step.index) + "]" : bindings.name_of(step);
  }
  return "[" + out + "]";
}

bool same_step(const PathStep& a, const PathStep& b, const Bindings& bindings) {
  return a.index == b.index && (a.index >= 0 || bindings.name_of(a) == bindings.name_of(b));
}

}  // namespace

void check_overlaps(const Update& update, const Bindings& bindings) {
  std::vector<const Path*> paths;
  for (const auto* section : {&update.set, &update.remove, &update.add, &update.erase}) {
    for (const Update::Action& action : *section) {
      paths.push_back(&action.path);
    }
  }
  for (std::size_t i = 0; i < paths.size(); ++i) {
    for (std::size_t k = i + 1; k < paths.size(); ++k) {
      const std::size_t common = std::min(paths[i]->size(), paths[k]->size());
      const auto same = [&](const PathStep& a, const PathStep& b) { return same_step(a, b, bindings); };
      if (std::equal(paths[i]->begin(), paths[i]->begin() + static_cast<std::ptrdiff_t>(common), paths[k]->begin(),
                     same)) {
        throw validation(
            "Invalid UpdateExpression: Two document paths overlap with each other; must remove or rewrite one of these "
            "paths; path one: " +
            text_of(*paths[i], bindings) + ", path two: " + text_of(*paths[k], bindings));
      }
    }
  }
}

namespace {

// The place that a path's last step is looked up in; null when a parent is not there.
AttributeValue* parent_of(const Path& path, Item& item, const Bindings& bindings) {
  const auto top = item.find(bindings.name_of(path.front()));
  AttributeValue* at = top == item.end() ? nullptr : &top->second;
  for (auto step = path.begin() + 1; step + 1 < path.end() && at != nullptr; ++step) {
    if (step->index >= 0) {
      auto* list = at->get<dynamo::List>();
      const auto index = static_cast<std::size_t>(step->index);
      at = list != nullptr && index < list->size() ? &(*list)[index] : nullptr;
    } else {
      auto* map = at->get<dynamo::Map>();
      const auto found = map == nullptr ? dynamo::Map::iterator() : map->find(bindings.name_of(*step));
      at = map != nullptr && found != map->end() ? &found->second : nullptr;
    }
  }
  return at;
}

void assign(const Path& path, AttributeValue value, Item& item, const Bindings& bindings) {
  if (path.size() == 1) {
    item.insert_or_assign(bindings.name_of(path.front()), std::move(value));
    return;
  }
  AttributeValue* parent = parent_of(path, item, bindings);
  const PathStep& last = path.back();
  if (parent != nullptr && last.index >= 0 && parent->is<dynamo::List>()) {
    auto& list = *parent->get<dynamo::List>();
    const auto index = static_cast<std::size_t>(last.index);
    if (index < list.size()) {
      list[index] = std::move(value);
    } else {
      list.push_back(std::move(value));
    }
    return;
  }
  if (parent == nullptr || last.index >= 0 || !parent->is<dynamo::Map>()) {
    throw bad_path();
  }
  parent->get<dynamo::Map>()->insert_or_assign(bindings.name_of(last), std::move(value));
}

void remove(const Path& path, Item& item, const Bindings& bindings) {
  if (path.size() == 1) {
    item.erase(bindings.name_of(path.front()));
    return;
  }
  AttributeValue* parent = parent_of(path, item, bindings);
  const PathStep& last = path.back();
  if (parent == nullptr) {
    return;
  }
  if (auto* list = parent->get<dynamo::List>(); list != nullptr && last.index >= 0) {
    const auto index = static_cast<std::size_t>(last.index);
    if (index < list->size()) {
      list->erase(list->begin() + last.index);
    }
    return;
  }
  auto* map = parent->get<dynamo::Map>();
  if (map == nullptr || last.index >= 0) {
    throw bad_path();
  }
  map->erase(bindings.name_of(last));
}

Failure wrong_operand() { return validation("An operand in the update expression has an incorrect data type"); }

AttributeValue added(const AttributeValue* before, const AttributeValue& more) {
  const auto* number = more.get<dynamo::Number>();
  if (number == nullptr) {
    return before == nullptr ? more : set_union(*before, more);
  }
  if (before == nullptr) {
    return more;
  }
  const auto* old = before->get<dynamo::Number>();
  if (old == nullptr) {
    throw wrong_operand();
  }
  return dynamo::Number{add_numbers(old->text, number->text)};
}

// Removals of list elements come last and from the back, so that no index moves under another.
void apply(std::vector<PathChange> changes, Item& item, const Bindings& bindings) {
  std::stable_sort(changes.begin(), changes.end(), [](const PathChange& a, const PathChange& b) {
    const auto rank = [](const PathChange& change) { return change.value ? -1 : change.path->back().index; };
    const bool a_removes = !a.value;
    const bool b_removes = !b.value;
    return a_removes != b_removes ? b_removes : a_removes && rank(a) > rank(b);
  });
  for (PathChange& change : changes) {
    if (change.value) {
      assign(*change.path, std::move(*change.value), item, bindings);
    } else {
      remove(*change.path, item, bindings);
    }
  }
}

}  // namespace

Item updated(const Update& update, const Item& item, const Bindings& bindings, std::set<std::string>* top) {
  Evaluator value(item, bindings);
  std::vector<PathChange> changes;
  for (const Update::Action& action : update.set) {
    const AttributeValue* computed = value(action.operand);
    if (computed == nullptr && action.operand.kind != Operand::Kind::set_delete) {
      throw validation("The provided expression refers to an attribute that does not exist in the item");
    }
    changes.push_back({&action.path, computed == nullptr ? std::nullopt : std::optional(*computed)});
  }
  for (const Update::Action& action : update.remove) {
    changes.push_back({&action.path, std::nullopt});
  }
  for (const Update::Action& action : update.add) {
    changes.push_back({&action.path, added(find_path(action.path, item, bindings), *value(action.operand))});
  }
  for (const Update::Action& action : update.erase) {
    if (const AttributeValue* before = find_path(action.path, item, bindings)) {
      changes.push_back({&action.path, set_difference(*before, *value(action.operand))});
    }
  }
  if (top != nullptr) {
    for (const PathChange& change : changes) {
      top->insert(bindings.name_of(change.path->front()));
    }
  }
  Item out = item;
  apply(std::move(changes), out, bindings);
  return out;
}

Item projected(const std::vector<Path>& paths, const Item& item, const Bindings& bindings) {
  Item out;
  for (const Path& path : paths) {
    const AttributeValue* value = find_path(path, item, bindings);
    if (value == nullptr) {
      continue;
    }
    // Builds the shape from the inside out; lists hold only what was asked for, in the order of the paths.
    AttributeValue* at = &out[bindings.name_of(path.front())];
    for (auto step = path.begin() + 1; step != path.end(); ++step) {
      if (step->index >= 0) {
        if (!at->is<dynamo::List>()) {
          *at = dynamo::List{};
        }
        at = &at->get<dynamo::List>()->emplace_back();
      } else {
        if (!at->is<dynamo::Map>()) {
          *at = dynamo::Map{};
        }
        at = &(*at->get<dynamo::Map>())[bindings.name_of(*step)];
      }
    }
    *at = *value;
  }
  return out;
}

}  // namespace sluice::test::model
