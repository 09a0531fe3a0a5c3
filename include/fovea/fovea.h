/* Fovea: image analysis and reconstruction from a few lines of text. */
#ifndef FOVEA_H
#define FOVEA_H

#include <fovea/clean.h>
#include <fovea/cluster.h>
#include <fovea/describe.h>
#include <fovea/estimate.h>
#include <fovea/image.h>
#include <fovea/memory.h>
#include <fovea/pilot.h>
#include <fovea/pipeline.h>
#include <fovea/ranks.h>
#include <fovea/report.h>
#include <fovea/scale.h>
#include <fovea/sql.h>
#include <fovea/status.h>
#include <fovea/table.h>
#include <fovea/tasks.h>
#include <fovea/units.h>

#endif
