#include "host/operate/content_document.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "host/operate/json_value.hpp"

namespace sluice::operate {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

queue::StoredMessage message_with(std::string body, std::string_view content_type = queue::kJson) {
  queue::StoredMessage stored;
  stored.message.id = "A-1";
  stored.message.body = std::move(body);
  stored.message.content_type = content_type;
  return stored;
}

std::string shown(const queue::ContentEdit& edit) {
  std::string text;
  for (const queue::PathStep& step : edit.path) {
    const auto* key = std::get_if<std::string>(&step);
    text += key != nullptr ? "/" + *key : "/#" + std::to_string(std::get<std::size_t>(step));
  }
  return text + (edit.json ? "=" + *edit.json : " away");
}

/// The edits as lines, or the error.
std::vector<std::string> edits_of(const queue::StoredMessage& message, const std::string& document) {
  const auto edits = content_edits(message, document);
  if (!edits) {
    return {edits.error().message()};
  }
  std::vector<std::string> lines;
  for (const auto& edit : *edits) {
    lines.push_back(shown(edit));
  }
  return lines;
}

TEST(ContentDocument, ShowsWhatCanBeEdited) {
  queue::StoredMessage message = message_with(R"({"n":1.50})");
  message.message.attributes = {{"tenant", "acme"}};
  EXPECT_EQ(content_document(message),
            "{\n  \"data\": {\n    \"n\": 1.50\n  },\n  \"content_type\": \"application/json\",\n"
            "  \"attributes\": {\n    \"tenant\": \"acme\"\n  }\n}\n");
  EXPECT_THAT(content_document(message_with("a\nb", queue::kTextPlain)), HasSubstr(R"("data": "a\nb")"));
}

TEST(ContentDocument, UnchangedTextIsNoEdit) {
  queue::StoredMessage message = message_with(R"({"n":9007199254740993,"k":1,"k":2,"l":[1,{"a":[]}]})");
  message.message.attributes = {{"tenant", "acme"}};
  message.message.group = "g";
  message.message.priority = queue::Priority::high;
  EXPECT_THAT(edits_of(message, content_document(message)), IsEmpty());
  for (const auto& other : {message_with("text", queue::kTextPlain), message_with("\xff\x01", queue::kOctetStream),
                            message_with("{broken", queue::kJson), message_with("null")}) {
    EXPECT_THAT(edits_of(other, content_document(other)), IsEmpty()) << content_document(other);
  }
}

TEST(ContentDocument, NamesOnlyWhatDiffers) {
  queue::StoredMessage message = message_with(R"({"a":1,"b":{"c":[1,2,3],"d":true},"e":"x"})");
  message.message.attributes = {{"one", "1"}, {"two", "2"}};
  EXPECT_THAT(edits_of(message, R"({"data":{"a":1.0,"b":{"c":[1,5],"d":true},"f":{"g":12345678901234567890.10}},
                                    "content_type":"application/json","attributes":{"two":"zwei","three":"3"},
                                    "group":"g"})"),
              ElementsAre("/data/a=1.0", "/data/b/c/#1=5", "/data/b/c/#2 away", "/data/e away",
                          "/data/f={\"g\":12345678901234567890.10}", "/group=\"g\"", "/attributes/one away",
                          "/attributes/two=\"zwei\"", "/attributes/three=\"3\""));
  EXPECT_THAT(edits_of(message_with("1"), R"({"data":1,"content_type":"application/json","priority":"low"})"),
              ElementsAre("/priority=\"low\""));
  EXPECT_THAT(edits_of(message, R"({"data":[1],"content_type":"text/plain"})"),
              ElementsAre("/content_type=\"text/plain\"", "/data=[1]", "/attributes/one away", "/attributes/two away"));
}

TEST(ContentDocument, RefusesWhatItCannotMean) {
  const auto message = message_with("1");
  const auto error = [&message](const std::string& document) { return edits_of(message, document).front(); };
  EXPECT_THAT(error("{\n \"data\": }"), HasSubstr("at line 2, column 10"));
  EXPECT_THAT(error("[1]"), HasSubstr("must be an object"));
  EXPECT_THAT(error(R"({"dat":1})"), HasSubstr("did you mean data?"));
  EXPECT_THAT(error(R"({"receive_count":1,"data":1})"), HasSubstr("cannot be edited"));
  EXPECT_THAT(error(R"({"data":1,"data":2,"content_type":"a"})"), HasSubstr("twice"));
  EXPECT_THAT(error(R"({"content_type":"a"})"), HasSubstr("data is missing"));
  EXPECT_THAT(error(R"({"data":1})"), HasSubstr("content_type is missing"));
  EXPECT_THAT(error(R"({"data":1,"content_type":1})"), HasSubstr("must be text"));
  EXPECT_THAT(error(R"({"data":1,"content_type":"a","attributes":{"n":1}})"), HasSubstr("object of texts"));
  const auto bytes = message_with("\xff", queue::kOctetStream);
  EXPECT_THAT(edits_of(bytes, R"({"data":"AA==","content_type":"application/octet-stream"})").front(),
              HasSubstr("cannot be edited"));
}

TEST(EditPath, ReadsNamesIndexesAndQuotes) {
  const auto path = [](const std::string& text) {
    const auto steps = parse_edit_path(text);
    return steps ? shown({.path = *steps, .json = "!"}) : steps.error().message();
  };
  EXPECT_EQ(path("data"), "/data=!");
  EXPECT_EQ(path("data.items[0].sku"), "/data/items/#0/sku=!");
  EXPECT_EQ(path(R"(data["odd key"]["a\"b=[c]"][12])"), R"(/data/odd key/a"b=[c]/#12=!)");
  EXPECT_EQ(path("attributes.trace-id"), "/attributes/trace-id=!");
  EXPECT_EQ(path("group"), "/group=!");
  EXPECT_EQ(path("priority"), "/priority=!");
  for (const char* const text :
       {"", "dta", ".data", "data.", "data..x", "data[", "data[x]", "data[0", "data[-1]", "data[\"x]",
        "data[99999999999999999999]", "attributes", "attributes.a.b", "content_type.x", "data x=1"}) {
    EXPECT_FALSE(parse_edit_path(text).has_value()) << text;
  }
  EXPECT_THAT(path("dta.x"), HasSubstr("did you mean data?"));
  EXPECT_THAT(path("data.a[x]"), HasSubstr("at column 7"));
}

TEST(Assignment, ReadsJsonBelowDataAndTextElsewhere) {
  const auto edit = [](const std::string& text) {
    const auto read = parse_assignment(text);
    return read ? shown(*read) : read.error().message();
  };
  EXPECT_EQ(edit("data.n=12.50"), "/data/n=12.50");
  EXPECT_EQ(edit("data.n={\"a\": [1 ,2]}"), "/data/n={\"a\":[1,2]}");
  EXPECT_EQ(edit("data.n=invoice"), "/data/n=\"invoice\"");
  EXPECT_EQ(edit("data.n=\"1\""), "/data/n=\"1\"");
  EXPECT_EQ(edit("data.n="), "/data/n=\"\"");
  EXPECT_EQ(edit("data.n=a=b"), "/data/n=\"a=b\"");
  EXPECT_EQ(edit("attributes.n=5"), "/attributes/n=\"5\"");
  EXPECT_EQ(edit("attributes.n=\"5\""), "/attributes/n=\"5\"");
  EXPECT_EQ(edit("content_type=text/plain"), "/content_type=\"text/plain\"");
  EXPECT_THAT(edit("data.n"), HasSubstr("has no value"));
}

/// Applies edits to a document, the plain way.
void apply(JsonValue& document, const queue::ContentEdit& edit) {
  JsonValue* value = &document;
  for (std::size_t step = 0; step + 1 < edit.path.size(); ++step) {
    value = const_cast<JsonValue*>(value->at(std::span(&edit.path[step], 1)));
    ASSERT_NE(value, nullptr);
  }
  const queue::PathStep& last = edit.path.back();
  std::size_t index = 0;
  if (const auto* key = std::get_if<std::string>(&last)) {
    index = static_cast<std::size_t>(std::find(value->keys.begin(), value->keys.end(), *key) - value->keys.begin());
  } else {
    index = std::get<std::size_t>(last);
  }
  ASSERT_LE(index, value->items.size());
  if (!edit.json) {
    value->items.erase(value->items.begin() + static_cast<std::ptrdiff_t>(index));
    if (!value->keys.empty()) {
      value->keys.erase(value->keys.begin() + static_cast<std::ptrdiff_t>(index));
    }
  } else if (index < value->items.size()) {
    value->items[index] = *parse_json(*edit.json);
  } else if (value->kind == JsonValue::Kind::object) {
    value->add(std::get<std::string>(last), *parse_json(*edit.json));
  } else {
    value->items.push_back(*parse_json(*edit.json));
  }
}

JsonValue random_json(std::mt19937_64& random, int depth) {
  const auto pick = random() % (depth > 0 ? 6 : 4);
  if (pick < 4) {
    const char* const plain[] = {"null", "true", "1.50", "\"x\""};
    return *parse_json(plain[pick]);
  }
  JsonValue value;
  value.kind = pick == 4 ? JsonValue::Kind::array : JsonValue::Kind::object;
  for (auto left = random() % 4; left > 0; --left) {
    const std::string key(1, static_cast<char>('a' + random() % 4));
    if (pick == 4) {
      value.items.push_back(random_json(random, depth - 1));
    } else if (value.member(key) == nullptr) {
      value.add(key, random_json(random, depth - 1));
    }
  }
  return value;
}

/// With the members of objects in the order of their names, which edits may change.
JsonValue sorted(const JsonValue& value) {
  JsonValue copy = value;
  for (JsonValue& item : copy.items) {
    item = sorted(item);
  }
  if (copy.kind == JsonValue::Kind::object) {
    std::sort(copy.keys.begin(), copy.keys.end());
    for (std::size_t index = 0; index < copy.keys.size(); ++index) {
      copy.items[index] = sorted(*value.member(copy.keys[index]));
    }
  }
  return copy;
}

TEST(ContentEdits, MakeAnyDocumentOfAnyOther) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 2'000; ++round) {
    const JsonValue before = random_json(random, 4);
    const JsonValue after = random_json(random, 4);
    const auto message = message_with(to_json(before));
    const auto edits = content_edits(message, R"({"content_type":"application/json","data":)" + to_json(after) + "}");
    ASSERT_TRUE(edits.has_value()) << edits.error().message();
    JsonValue document;
    document.add("data", before);
    for (const auto& edit : *edits) {
      apply(document, edit);
    }
    ASSERT_EQ(to_json(sorted(*document.member("data"))), to_json(sorted(after))) << to_json(before);
  }
}

}  // namespace
}  // namespace sluice::operate
