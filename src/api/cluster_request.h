/* What a user asks of a cluster, over what the profiles say. */
#ifndef FV_CLUSTER_REQUEST_H
#define FV_CLUSTER_REQUEST_H

#include "cluster/cluster_profile.h"
#include <fovea/cluster.h>

/* Reads the profile that the options name into one with defaults, and then puts what they say over it. */
fv_status fv__cluster_request(const fv_cluster_options *options, fv_profile *profile, fv_error *error);

#endif
