from setuptools import find_packages, setup

# The examples live at the top level, where readers look for them, and travel inside
# the package, so that `python -m tfsafe demo` works from a wheel as well.
setup(
    packages=[*find_packages(include=["tfsafe*"]), "tfsafe.examples"],
    package_dir={"tfsafe.examples": "examples"},
)
