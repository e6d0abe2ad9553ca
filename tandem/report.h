// Result structs of training and evaluation. This header lists the public headers of tandem/report.
#pragma once

#include "tandem/report/class_metrics.h"
#include "tandem/report/epoch_record.h"
#include "tandem/report/fold_record.h"
#include "tandem/report/pretrain_record.h"
