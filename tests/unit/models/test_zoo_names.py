"""Names of networks that there are none of."""

import pytest

from stages.ir.models.zoo.names import check


def test_models_of_plug_ins_are_among_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"did you mean 'two_layers'\? Known: .*ds_cnn.*, two_layers$"):
        check("two_layer", ("two_layers",))
