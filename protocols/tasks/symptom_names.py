"""Other names of the diseases in the public table of symptoms, its own misspellings mended."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from moot.protocols.labels import fold

SPELLINGS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        fold(name): spellings
        for name, spellings in {
            "(vertigo) Paroymsal Positional Vertigo": (
                "vertigo",
                "positional vertigo",
                "paroxysmal positional vertigo",
                "(vertigo) paroxysmal positional vertigo",
                "benign paroxysmal positional vertigo",
                "BPPV",
            ),
            "Acne": ("acne vulgaris",),
            "AIDS": ("acquired immunodeficiency syndrome", "acquired immune deficiency syndrome", "HIV/AIDS"),
            "Alcoholic hepatitis": ("alcohol-related hepatitis", "alcohol-associated hepatitis"),
            "Allergy": ("allergies", "allergic reaction"),
            "Bronchial Asthma": ("asthma",),
            "Cervical spondylosis": ("cervical osteoarthritis",),
            "Chicken pox": ("chickenpox", "varicella"),
            "Chronic cholestasis": ("cholestasis",),
            "Common Cold": ("cold", "the common cold"),
            "Dengue": ("dengue fever",),
            "Diabetes": ("diabetes mellitus",),
            "Dimorphic hemmorhoids(piles)": (
                "Dimorphic hemorrhoids(piles)",
                "dimorphic hemorrhoids (piles)",
                "dimorphic hemorrhoids",
                "hemorrhoids (piles)",
                "hemorrhoids",
                "haemorrhoids",
                "piles",
            ),
            "Drug Reaction": ("adverse drug reaction", "drug reactions", "ADR"),
            "Fungal infection": ("fungal infections", "mycosis"),
            "Gastroenteritis": ("gastro-enteritis",),
            "GERD": (
                "gastroesophageal reflux disease",
                "gastro-oesophageal reflux disease",
                "gastroesophageal reflux disease (GERD)",
                "GORD",
            ),
            "Heart attack": ("myocardial infarction", "acute myocardial infarction"),
            "Hepatitis A": ("HAV", "HAV infection", "viral hepatitis A"),
            "Hepatitis B": ("HBV", "HBV infection", "viral hepatitis B"),
            "Hepatitis C": ("HCV", "HCV infection", "viral hepatitis C"),
            "Hepatitis D": ("HDV", "HDV infection", "hepatitis delta", "viral hepatitis D"),
            "Hepatitis E": ("HEV", "HEV infection", "viral hepatitis E"),
            "Hypertension": ("high blood pressure", "arterial hypertension", "HTN"),
            "Hyperthyroidism": ("overactive thyroid",),
            "Hypoglycemia": ("hypoglycaemia", "low blood sugar"),
            "Hypothyroidism": ("underactive thyroid",),
            "Impetigo": ("impetigo contagiosa",),
            "Jaundice": ("icterus",),
            "Migraine": ("migraine headache",),
            "Osteoarthristis": ("osteoarthritis", "degenerative arthritis"),
            "Paralysis (brain hemorrhage)": (
                "paralysis",
                "brain hemorrhage",
                "brain haemorrhage",
                "intracerebral hemorrhage",
                "intracerebral haemorrhage",
                "hemorrhagic stroke",
                "haemorrhagic stroke",
            ),
            "Peptic ulcer diseae": ("peptic ulcer disease", "peptic ulcer", "PUD"),
            "Tuberculosis": ("TB",),
            "Typhoid": ("typhoid fever", "enteric fever"),
            "Urinary tract infection": ("UTI",),
            "Varicose veins": ("varicose vein",),
        }.items()
    }
)
"""Other names by the folded name of the table; a disease that is missing here has none."""
