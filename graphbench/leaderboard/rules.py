"""The rules of the leaderboard in words: one text for all pages."""

from __future__ import annotations

from graphbench.leaderboard.aggregation import HIGHEST, LOWEST, MOST_COMPARED

RULES: tuple[tuple[str, str], ...] = (
    (
        "Tables",
        "A table holds the models of one dataset (with its task and protocol) and one split, scored on the same "
        "samples: same version and draw of the dataset, same content hash, same number of "
        "graphs. A row holds the runs of one configuration with one budget; its runs differ in the seed alone. "
        "Scores on other draws, older versions or fewer graphs stand in separate tables "
        "and do not count in means over datasets.",
    ),
    (
        "Budget classes",
        "A class is an upper limit of training. Class minutes: at most 30 minutes of one processor core, validations "
        "included; on a GPU at most as many floating-point operations as a core computes in that time (3.6e13, half "
        "an hour at 20 GFLOP/s). Class paper: at most as many training samples (steps times samples per step) as the "
        "paper's models on the dataset saw. Class open: every model. A model stands in every class whose limit it "
        "keeps, so a model of minutes competes with all others; its row names the tightest class and the rank in it. A "
        "model whose budget and cost are not stated is in the class open alone.",
    ),
    (
        "Scores",
        "The mean of the primary metric over the seeds. From three seeds on whose scores differ, the 95 % interval is "
        "Student's t interval of the mean, within the metric's range; for fewer, if their records hold bootstrap "
        "replicates, it goes from the 2.5 % to the 97.5 % quantile of these and leaves the spread over seeds out. "
        "Elsewhere there is no interval. A run whose scores and bootstrap replicates all equal an earlier seed's to "
        "six digits is a copy: it is dropped, and the row says so. Where every sample has the same score, as where "
        "all are right, a run is a copy only if its training curves are equal too. The interval of such a score has "
        "no width, which says that no test sample was missed, not that none ever will be. A model without any random "
        "number (a solver, a closed form, nearest neighbours) is deterministic and has one run.",
    ),
    (
        "Runs that count",
        "In tests the runs of a learner count in the order of their seeds, from seed 0 to the first missing seed, so "
        "nobody can choose among runs. A learner needs the seeds 0, 1 and 2; with fewer it is separated from nothing "
        "and has no rank. Its records must hold bootstrap replicates, wherever the metric has them and the split has "
        "at least twenty samples.",
    ),
    (
        "Tests",
        "Two models are compared after 3, 5, 10, 20, ... common seeds, a learner and a deterministic model after as "
        "many seeds of the learner, and two deterministic models once. The test covers both sources of chance: the "
        "variance over seeds, and the variance over the draw of the test samples by the paired bootstrap (in "
        "replicate r a sample has the same random weight for all models). The squared difference is compared with the "
        "sum of the variances, each times the squared quantile of Student's distribution with its degrees of freedom; "
        "this holds its level for all variances. The test assumes scores over seeds that are independent and "
        "nearly normal, and independent samples (times of a weather record are not). Where no bootstrap is possible, "
        "the test samples are taken as given. If a model has the same score with every seed, its variance over seeds "
        "would be 0; the p-value is then at least that of a permutation test of as many runs. The first comparison, "
        "after 3 seeds, may use two thirds of the 5 %, each later one two thirds of what is left. So removing "
        "runs of a model, or copying them, never makes a difference of this model significant, and adding seeds until "
        "a test succeeds does not pay. The p-values of all pairs of ranked models of a table are corrected by Holm's "
        "method, so the chance that a table separates any two models that do not differ is at most 5 %. Models "
        "without a rank are not counted.",
    ),
    (
        "Ranks",
        "The rank of a model is 1 plus the number of ranked models that are significantly better; a model that cannot "
        "be compared with any other has none, and the row says why. Where models are not all "
        "separated a range is shown: 1-3 means that the model may be anywhere from first to third. Models are listed "
        "by their means; a model with a wide spread can share a rank with better ones, because nothing shows that it "
        "is worse.",
    ),
    (
        "References",
        "The best trivial predictor, reference solvers and published scores stand beside the models and are not "
        "ranked. A trivial predictor or a solver that was measured on the samples that the models were scored on can "
        "be compared with them. One that was measured on others (fewer, more, or an unknown number) comes last, says "
        "on how many, and is neither drawn nor counted in normalised scores. Published scores follow the same "
        "protocol and are of the authors' samples; beside models that were scored on a part of the split they cannot "
        "be compared.",
    ),
    (
        "Means over datasets",
        "They are means of ranks and of normalised scores on the test split, never of raw scores. A normalised score "
        "is 0 for the best trivial predictor and 1 for the best known score: the score of the best reference solver "
        "if it is better than the trivial predictor, else the best possible value of the metric (f1 = 1, mae = 0). "
        "Structural rules, which read the graph as models do, are no zero; they stand among the references. The score "
        f"is cut at {LOWEST:g} and {HIGHEST:g}: a model below the best trivial predictor has 0, and a dataset on which "
        "0 and 1 lie close together cannot dominate a mean. Both scores that define 0 and 1 are measured on the "
        "samples that the models were scored on; a dataset of which nothing was measured on these has no normalised "
        "scores and is named. A dataset that a model "
        "has no score on counts 0 in its mean, so leaving one out never raises the mean; the mean over the model's "
        "datasets stands beside. Every dataset of a domain counts the same, and in the suite every domain. A "
        "dataset counts once: by the runs of its main protocol, the one of the split train. Runs of its other "
        "protocols have separate means, over the domain; runs on files have none.",
    ),
    (
        "Mean ranks",
        "Only models with a score on every dataset of a group are ranked in it, among each other; on a dataset each "
        "has the middle of its range of ranks. Others with at least half of the datasets are listed with their "
        f"number. Each two of the {MOST_COMPARED} models with the most datasets are compared on the datasets that both "
        "have, by the same tests at 5 % a dataset, without correction over datasets. Datasets on which no test "
        "compares them are not counted.",
    ),
    (
        "Models",
        "In means over datasets a model is a name of configurations; its settings may differ from dataset to "
        "dataset, as the configuration's file says. Where a dataset has several configurations of a name, the one "
        "with the most datasets keeps the name, unmodified ones first, and the others have digits behind it.",
    ),
    (
        "Names",
        "Eight digits behind a name, as in gin [9d722af7], tell two configurations of that name apart. The digits are "
        "a hash of the settings: the same settings have the same digits on every page. Where models of one name start "
        "from different weights, the name says from which dataset these are.",
    ),
    (
        "All splits",
        "A dash says that the model has no score on the whole split. It may have one on a part of the split, which "
        "stands in the table of its samples, where a table of that part is shown.",
    ),
    (
        "Cost",
        "Means over the runs of a row, on the devices named beside them. Training time leaves data generation out; "
        "peak memory is the memory of the process, or of the GPU if one was used; graphs/s are training samples per "
        "second. Budget is what the run was given, in optimizer steps and samples per step, and graphbench is the "
        "version that made the record. Times of different devices are not comparable.",
    ),
)
"""(heading, text) of every rule."""
