"""Deployments of Azure OpenAI, by chat completions."""

from __future__ import annotations

from adaexplore.llm.service import ServiceClient, not_set, open_sdk, read_key
from adaexplore.llm.vendors.openai_client import OpenAIService, chat_parameters
from adaexplore.llm.vendors.vendor import Opening, Vendor

AZURE_API_VERSION = "2024-12-01-preview"
_ENDPOINT = "AZURE_OPENAI_ENDPOINT"
_KEY = "AZURE_API_KEY"


def _open(opening: Opening) -> ServiceClient:
    """Connect to the deployment named ``model_name``; its endpoint is ``base_url`` or the variable's."""
    config, environment = opening.config, opening.environment
    endpoint = config.base_url or environment.get(_ENDPOINT)
    if not endpoint:
        raise not_set(_ENDPOINT, "set it to https://<resource>.openai.azure.com")
    key = read_key(environment, _KEY)
    if key is None:
        raise not_set(_KEY, "set it to a key of the Azure OpenAI resource")
    sdk = open_sdk(
        "openai",
        "AzureOpenAI",
        address=endpoint,
        timeout_s=opening.timeout_s,
        azure_endpoint=endpoint,
        api_version=AZURE_API_VERSION,
        api_key=key,
    )
    service = OpenAIService(sdk, config.model_name, _KEY)
    return ServiceClient(service, config.model_name, chat_parameters(config))


VENDOR = Vendor(
    names=("azure",),
    about="an Azure OpenAI deployment",
    needs=f"`{_ENDPOINT}`, `{_KEY}`",
    open=_open,
    cost="listed",
    variables=(_KEY, _ENDPOINT),
    has_tiers=True,
)
