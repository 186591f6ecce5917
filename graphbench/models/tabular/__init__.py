"""Tabular models: estimators of scikit-learn and XGBoost on features of graphs."""
