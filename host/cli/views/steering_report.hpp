#pragma once

#include <string>
#include <vector>

#include "host/cli/arguments.hpp"
#include "host/cli/console.hpp"
#include "host/cli/fleet_session.hpp"

namespace sluice::cli {

/// The switch of commands whose wish stands until it is taken back.
Flag reset_flag(std::string_view help);
/// Whom pause and resume mean.
std::vector<Flag> with_thing_flags(std::vector<Flag> own);
/// A job or queue by the operand or by --job or --queue; exit 64 for none or several, 1 for one that nobody knows.
OrExit<fleet::Directive> read_thing(const Arguments& arguments, const operate::KnownNames& names, fleet::Wish wish);

/// Gives a wish that stands, waits until the hosts obey it and says who does. Exit 1 when some have not in time.
Exit give_wish(const Arguments& arguments, FleetSession& session, const fleet::Directive& wish, Console& console);
/// Takes a wish back about a name (empty: about everything), the same way. `nothing` is said, with exit 1, where there
/// was none.
Exit take_back(const Arguments& arguments, FleetSession& session, fleet::Wish wish, const std::string& name,
               const std::string& nothing, Console& console);

/// Says what became of an order: by whom and how.
struct OrderReport {
  std::string order;  ///< "drain host a:12"
  std::string host;   ///< the one that carried it out; may be empty
  std::string text;   ///< what it says
};
void show(const OrderReport& report, Output output, Console& console);
/// What hosts said to an order that was given through the store. Exit 1 where one refused it or has not looked in time.
Exit show_answers(const std::string& order, const operate::Compliance& compliance, Output output, Console& console);

/// The host of this machine that is meant: by its name, label or instance, or the only one when `word` is empty. Null
/// where there is none; exit 64 where several are meant.
OrExit<const runtime::LocalHost*> find_local(const runtime::LocalHosts& local, const std::string& word);

}  // namespace sluice::cli
