"""The paper's two experiments: protocols, rivals, runner and report."""
