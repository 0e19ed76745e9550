// The PartiQL of RandomRequests: statements as the DynamoMQ store builds them, and near misses.

#include <set>

#include "tests/dynamodb_model/random_requests.hpp"

namespace sluice::test::model {

namespace json = boost::json;

json::object RandomRequests::one_statement(const std::string& key) {
  json::array parameters;
  std::string out;
  const auto put = [&](json::value parameter) { parameters.push_back(std::move(parameter)); };
  const json::value version = {{"N", std::to_string(below(4))}};
  switch (below(12)) {
    case 0:
    case 1: {
      out = R"(INSERT INTO "jobs" VALUE {'id':?)";
      put(text(key));
      json::object item = job();
      for (const auto& member : item) {
        if (member.key() != "id") {
          out += ",'" + std::string(member.key()) + "':?";
          put(member.value());
        }
      }
      out += "}";
      break;
    }
    case 2:
    case 3:
    case 4:
      out = R"(UPDATE "jobs" SET "version"=?,"updated_at"=?)";
      put({{"N", std::to_string(below(4))}});
      put(text("now"));
      if (chance(50)) {
        out += R"(,"sent"=?)";
        put(text(chance(95) ? "t" + std::to_string(below(30)) : ""));
      }
      if (chance(30)) {
        out += R"( REMOVE "tags")";
      }
      out += R"( WHERE "id"=?)";
      put(text(key));
      if (chance(80)) {
        out += R"( AND "version"=?)";
        put(version);
      }
      if (chance(30)) {
        out += R"( AND "sent"<?)";
        put(text("t2"));
      }
      out += chance(70) ? " RETURNING ALL NEW *" : "";
      break;
    case 5:
      out = R"(UPDATE "jobs" SET "version"=? WHERE "id"=? AND "version" IS MISSING RETURNING ALL NEW *)";
      put(version);
      put(text(key));
      break;
    case 6:
    case 7:
      out = R"(DELETE FROM "jobs" WHERE "id"=? AND "version"=?)";
      put(text(key));
      put(version);
      out += chance(50) ? " RETURNING ALL OLD *" : "";
      break;
    case 8:
      out = R"(DELETE FROM "jobs" WHERE "id"=? RETURNING ALL OLD *)";
      put(text(key));
      break;
    case 9:
      out = R"(UPDATE "jobs" SET "data"=? WHERE "id"=? RETURNING ALL OLD *)";
      put(value());
      put(text(key));
      break;
    case 10:
      out = R"(UPDATE "nowhere" SET "a"=? WHERE "id"=?)";
      put(text("other"));
      put(text(key));
      break;
    default:
      out = R"(DELETE FROM "jobs" WHERE "version"=?)";
      put(version);
  }
  return {{"Statement", out}, {"Parameters", parameters}};
}

Question RandomRequests::statements() {
  json::array all;
  std::set<std::string> seen;
  const bool reading = chance(10);
  for (std::size_t i = 0; i < below(8) + 1; ++i) {
    const std::string key = id();
    if (!seen.insert(key).second) {
      continue;
    }
    if (reading) {
      all.push_back(
          json::object{{"Statement", R"(SELECT * FROM "jobs" WHERE "id"=?)"}, {"Parameters", json::array{text(key)}}});
    } else {
      all.push_back(one_statement(key));
    }
  }
  return {"BatchExecuteStatement", {{"Statements", all}}};
}

Question RandomRequests::statement() {
  if (chance(30)) {
    return {"ExecuteStatement",
            {{"Statement", R"(SELECT * FROM "jobs"."by-kind" WHERE "kind"=? AND "sent">?)"},
             {"Parameters", json::array{text("k0"), text("t1")}}}};
  }
  return {"ExecuteStatement", one_statement(id())};
}

}  // namespace sluice::test::model
