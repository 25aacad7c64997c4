// The services that the scripts of Requester and Responder run on.
#include "tests/conformance/conformance.h"

namespace uib::conformance {

INSTANTIATE_TEST_SUITE_P(On, Requester,
                         ::testing::Values(transport::Service::kRc, transport::Service::kXrcInitiator),
                         service_name);
INSTANTIATE_TEST_SUITE_P(On, Responder,
                         ::testing::Values(transport::Service::kRc, transport::Service::kXrcTarget),
                         service_name);

}  // namespace uib::conformance
