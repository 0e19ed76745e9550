#include "host/cost/spend_scope.hpp"

namespace sluice::cost {
namespace {

thread_local SpendScope* innermost = nullptr;

}  // namespace

SpendScope::SpendScope(const std::string& queue, Whose whose) : queue_(queue), whose_(whose), outer_(innermost) {
  innermost = this;
}

SpendScope::~SpendScope() { innermost = outer_; }

SpendScope* SpendScope::current() { return innermost; }

}  // namespace sluice::cost
