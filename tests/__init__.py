"""The tests of tfsafe, and what must be set before TensorFlow is imported."""

import os

# Its start-up log is not about us.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# oneDNN's bfloat16 kernels die of an illegal instruction on virtual machines whose
# processor announces AMX while the hypervisor does not allow it.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")
